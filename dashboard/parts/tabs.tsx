import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

/** Tabs with a URL each: a list of links. Keys: those of links. */
export function LinkTabs({
  label,
  tabs,
  current,
}: {
  label: string;
  tabs: readonly { name: string; href: string; key: string }[];
  current: string;
}) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ name, href, key }) => (
        <a key={key} href={href} aria-current={key === current ? "page" : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

interface TabsProps<K extends string> {
  label: string;
  tabs: readonly { key: K; name: string }[];
  current: K;
  onChange: (key: K) => void;
  children: ComponentChildren;
}

/** Tabs of one panel. Keys: ← → move and choose, Home and End go to the ends, Tab goes into the panel. */
export function Tabs<K extends string>({ label, tabs, current, onChange, children }: TabsProps<K>) {
  const id = useId();
  const at = tabs.findIndex(({ key }) => key === current);
  const move = (event: KeyboardEvent): void => {
    const to: Record<string, number> = {
      ArrowRight: (at + 1) % tabs.length,
      ArrowLeft: (at + tabs.length - 1) % tabs.length,
      Home: 0,
      End: tabs.length - 1,
    };
    const next = to[event.key];
    if (next === undefined) return;
    event.preventDefault();
    onChange(tabs[next]!.key);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
  };
  return (
    <div class="tabbed">
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map(({ key, name }) => (
          <button
            key={key}
            type="button"
            role="tab"
            id={`${id}-${key}`}
            aria-selected={key === current}
            aria-controls={key === current ? `${id}-panel` : undefined}
            tabIndex={key === current ? 0 : -1}
            onClick={() => onChange(key)}
          >
            {name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current}`} class="tab-panel">
        {children}
      </div>
    </div>
  );
}
