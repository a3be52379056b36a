import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { leave } from "../core/unsaved.ts";

/** A strip of tabs that scrolls: the current one is brought into view, and an end with more beyond it fades. */
function useStrip<E extends HTMLElement>(current: string) {
  const strip = useRef<E>(null);
  useEffect(() => {
    const element = strip.current!;
    const fade = (): void => {
      const { scrollLeft, scrollWidth, clientWidth } = element;
      element.classList.toggle("more-before", scrollLeft > 1);
      element.classList.toggle("more-after", scrollLeft + clientWidth < scrollWidth - 1);
    };
    const show = (): void => {
      const tab = element.querySelector<HTMLElement>("[aria-current], [aria-selected=true]");
      if (tab !== null)
        element.scrollLeft =
          tab.offsetLeft - element.offsetLeft - (element.clientWidth - tab.offsetWidth) / 2;
      fade();
    };
    // Observing also calls it at once.
    const observer = new ResizeObserver(show);
    observer.observe(element);
    element.addEventListener("scroll", fade);
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", fade);
    };
  }, [current]);
  return strip;
}

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
  const strip = useStrip<HTMLElement>(current);
  return (
    <nav class="tabs" ref={strip} aria-label={label}>
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

/** Tabs of one panel, whose unsaved input is not lost without a question. Keys: ← → move and choose, Home and End go to the ends, Tab goes into the panel. */
export function Tabs<K extends string>({ label, tabs, current, onChange, children }: TabsProps<K>) {
  const id = useId();
  const panel = useRef<HTMLDivElement>(null);
  const choose = (key: K): void => leave(() => onChange(key), panel.current!);
  const strip = useStrip<HTMLDivElement>(current);
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
    choose(tabs[next]!.key);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
  };
  return (
    <div class="tabbed">
      <div class="tabs" ref={strip} role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map(({ key, name }) => (
          <button
            key={key}
            type="button"
            role="tab"
            id={`${id}-${key}`}
            aria-selected={key === current}
            aria-controls={key === current ? `${id}-panel` : undefined}
            tabIndex={key === current ? 0 : -1}
            onClick={() => choose(key)}
          >
            {name}
          </button>
        ))}
      </div>
      <div
        ref={panel}
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-${current}`}
        class="tab-panel"
      >
        {children}
      </div>
    </div>
  );
}
