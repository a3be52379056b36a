import { isAllowed } from "../core/permissions.ts";
import { theme, type Theme } from "../core/preferences.ts";
import { href, navigate } from "../core/router.ts";
import { signOut, type Session } from "../core/session.ts";
import { useStore } from "../core/store.ts";
import { leave } from "../core/unsaved.ts";
import { Icon } from "../parts/icon.tsx";
import { Menu } from "../parts/menu.tsx";
import { Brand } from "./brand.tsx";
import type { Route } from "./route.ts";
import { routes } from "./routes.ts";

interface SidebarProps {
  opened: Session;
  account: string;
  current: Route | undefined;
  onSearch: () => void;
  onHelp: () => void;
}

const themes: readonly { key: Theme; name: string }[] = [
  { key: "system", name: "As the system" },
  { key: "light", name: "Light" },
  { key: "dark", name: "Dark" },
];

/** The menu at the left: account, search, products, and the account's own screens. */
export function Sidebar({ opened, account, current, onSearch, onHelp }: SidebarProps) {
  const name = opened.accounts.find(({ id }) => id === account)?.name ?? account;
  const chosen = useStore(theme);
  return (
    <div class="sidebar" role="region" aria-label="Console">
      <a href={href(`/${account}`)} class="home">
        <Brand />
      </a>
      <Menu
        label={`Account ${name}`}
        class="account-switch"
        align="start"
        items={opened.accounts.map(({ id, name }) => ({
          label: name,
          isChecked: id === account,
          onSelect: () => navigate(`/${id}`),
        }))}
      >
        <span class="account-name">{name}</span>
        <Icon name="down" />
      </Menu>
      <button type="button" class="search-button" onClick={onSearch}>
        <Icon name="search" />
        <span>Search</span>
        <kbd>Ctrl K</kbd>
      </button>
      <nav aria-label="Products">
        <Links group="products" account={account} current={current} />
      </nav>
      <nav aria-label="Account" class="low">
        <Links group="account" account={account} current={current} />
      </nav>
      <div class="sidebar-foot">
        <Menu
          label="Theme, keyboard shortcuts and session"
          class="me"
          align="start"
          items={[
            ...themes.map(({ key, name }) => ({
              label: name,
              group: "Theme",
              isChecked: chosen === key,
              onSelect: () => theme.set(key),
            })),
            { label: "Keyboard shortcuts", icon: "info" as const, onSelect: onHelp },
            { label: "Sign out", icon: "leave" as const, onSelect: () => leave(() => void signOut()) },
          ]}
        >
          <span class="me-text">
            <span>{opened.user?.email ?? opened.token.name}</span>
            <small>{opened.token.name}</small>
          </span>
          <Icon name="more" />
        </Menu>
      </div>
    </div>
  );
}

function Links({
  group,
  account,
  current,
}: {
  group: "products" | "account";
  account: string;
  current: Route | undefined;
}) {
  const shown = routes.filter(
    ({ menu, needs }) => menu?.group === group && isAllowed(needs, { accountId: account }),
  );
  return (
    <ul>
      {shown.map((route) => {
        const isCurrent =
          route === current ||
          (current !== undefined &&
            route.pattern !== "/:account" &&
            current.pattern.startsWith(`${route.pattern}/`));
        return (
          <li key={route.pattern}>
            <a
              href={href(route.pattern.replace(":account", account))}
              aria-current={isCurrent ? "page" : undefined}
            >
              <Icon name={route.menu!.icon} />
              {route.title}
            </a>
          </li>
        );
      })}
    </ul>
  );
}
