import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isAllowed, ScopeContext } from "../core/permissions.ts";
import { useShortcuts } from "../core/keys.ts";
import { href, navigate, useLocation } from "../core/router.ts";
import type { Session } from "../core/session.ts";
import { Icon } from "../parts/icon.tsx";
import { Bars, Empty } from "../parts/states.tsx";
import { Button } from "../parts/button.tsx";
import { Denied } from "./denied.tsx";
import { Help } from "./help.tsx";
import { Palette } from "./palette.tsx";
import type { Route, ScreenProps } from "./route.ts";
import { routes } from "./routes.ts";
import { find, loaded, loadScreen, type Found } from "./screens.ts";
import { Sidebar } from "./sidebar.tsx";
import { ZoneFrame } from "./zone-frame.tsx";

type Overlay = "palette" | "help" | undefined;

/** The menu at the left, and the screen of the current URL. */
export function Frame({ opened }: { opened: Session }) {
  const { path } = useLocation();
  const found = find(path);
  const account = found?.values["account"] ?? opened.accounts[0]!.id;
  const [overlay, setOverlay] = useState<Overlay>(undefined);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  useShortcuts([
    { keys: "mod+k", label: "Search everything", group: "Everywhere", run: () => setOverlay("palette") },
    { keys: "?", label: "Keyboard shortcuts", group: "Everywhere", run: () => setOverlay("help") },
    {
      keys: "/",
      label: "Filter",
      group: "Everywhere",
      run: () => document.querySelector<HTMLElement>("[data-filter], .toolbar :is(input, select)")?.focus(),
    },
    ...routes.flatMap(({ keys, title, pattern, tab }) =>
      keys === undefined || tab !== undefined
        ? []
        : [{ keys, label: title, group: "Go to", run: () => navigate(pattern.replace(":account", account)) }],
    ),
  ]);
  useLayoutEffect(() => {
    // The form of the sign-in had the focus, and has left.
    if (document.activeElement === document.body) main.current?.focus({ preventScroll: true });
  }, []);
  useEffect(() => {
    setMenuOpen(false);
    // The element with the focus has left with the old screen: the next Tab begins with the new one.
    if (document.activeElement === document.body) main.current?.focus({ preventScroll: true });
    document.title = [found?.values["zone"], found?.route.title, "Selvedge"].filter(Boolean).join(" · ");
  }, [path]);
  const scope = useMemo(() => ({ accountId: account }), [account]);
  const known = opened.accounts.some(({ id }) => id === account);
  return (
    <ScopeContext.Provider value={scope}>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <div class={`frame ${isMenuOpen ? "menu-open" : ""}`}>
        <header class="top-bar">
          <Button
            icon={isMenuOpen ? "close" : "menu"}
            kind="quiet"
            label="Menu"
            onPress={() => setMenuOpen(!isMenuOpen)}
          />
          <a href={href(`/${account}`)} class="top-name">
            Selvedge
          </a>
          <Button icon="search" kind="quiet" label="Search" onPress={() => setOverlay("palette")} />
        </header>
        <Sidebar
          opened={opened}
          account={account}
          current={found?.route}
          onSearch={() => setOverlay("palette")}
          onHelp={() => setOverlay("help")}
        />
        <main id="main" ref={main} tabIndex={-1}>
          {found === undefined || !known ? (
            <Missing account={opened.accounts[0]!.id} />
          ) : (
            <Screen key={account} found={found} account={account} />
          )}
        </main>
      </div>
      {overlay === "palette" && <Palette account={account} onClose={() => setOverlay(undefined)} />}
      {overlay === "help" && <Help onClose={() => setOverlay(undefined)} />}
    </ScopeContext.Provider>
  );
}

const Missing = ({ account }: { account: string }) => (
  <Empty
    icon="search"
    title="Nothing is at this address"
    actions={
      <a class="button" href={href(`/${account}`)}>
        Overview
      </a>
    }
  />
);

function Screen({ found: { route, values }, account }: { found: Found; account: string }) {
  const { zone, account: _, ...params } = values;
  const body = <LoadedScreen key={route.pattern} route={route} account={account} params={params} />;
  if (zone === undefined)
    return isAllowed(route.needs, { accountId: account }) ? (
      <div class="screen">{body}</div>
    ) : (
      <Denied needs={route.needs!} />
    );
  return (
    <ZoneFrame key={zone} account={account} name={zone} route={route}>
      {body}
    </ZoneFrame>
  );
}

/** Loads the code of a screen, and shows it. */
function LoadedScreen({ route, ...props }: ScreenProps & { route: Route }) {
  const known = loaded(route);
  const [screen, setScreen] = useState<{ of: ComponentType<ScreenProps> } | "failed" | undefined>(
    known && { of: known },
  );
  useLayoutEffect(() => {
    if (known !== undefined) return;
    let isCurrent = true;
    loadScreen(route).then(
      (of) => isCurrent && setScreen({ of }),
      () => isCurrent && setScreen("failed"),
    );
    return () => {
      isCurrent = false;
    };
  }, [route]);
  if (screen === undefined) return <Bars />;
  if (screen !== "failed") return <screen.of {...props} />;
  return (
    <div class="failure" role="alert">
      <Icon name="warning" />
      <div>
        <strong>This screen could not be loaded</strong>
        <p>The server has a newer console, or cannot be reached.</p>
      </div>
      <Button icon="refresh" onPress={() => location.reload()}>
        Load again
      </Button>
    </div>
  );
}
