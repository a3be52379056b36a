import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icon.tsx";
import { place } from "./tooltip.tsx";

export interface MenuItem {
  label: string;
  icon?: IconName;
  kind?: "bad";
  /** The reason why it cannot be chosen now. */
  refusal?: string | undefined;
  isChecked?: boolean;
  /** The heading above it and the items after it that have the same. */
  group?: string;
  onSelect: () => void;
}

interface MenuProps {
  label: string;
  items: readonly MenuItem[];
  icon?: IconName;
  children?: ComponentChildren;
  class?: string;
  align?: "start" | "end";
}

/**
 * A button that opens a list of actions. Keys: Enter, Space, ↓ and ↑ open; ↓ ↑ Home End move; a letter goes to the next
 * item that begins with it; Enter and Space choose; Escape and Tab close.
 */
export function Menu({ label, items, icon = "more", children, class: given = "", align = "end" }: MenuProps) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | undefined>(undefined);
  const isOpen = at !== undefined;
  useEffect(() => {
    if (!isOpen) return;
    list.current!.showPopover();
    place(list.current!, button.current!.getBoundingClientRect(), align);
    const closeOutside = (event: Event): void => {
      if (!list.current?.contains(event.target as Node) && !button.current?.contains(event.target as Node))
        setAt(undefined);
    };
    document.addEventListener("pointerdown", closeOutside, true);
    return () => document.removeEventListener("pointerdown", closeOutside, true);
  }, [isOpen]);
  useEffect(() => {
    if (at !== undefined) list.current?.querySelectorAll<HTMLElement>('[role^="menuitem"]')[at]?.focus();
  }, [at]);
  const close = (): void => {
    setAt(undefined);
    button.current?.focus();
  };
  const choose = (item: MenuItem): void => {
    if (item.refusal !== undefined) return;
    close();
    item.onSelect();
  };
  const move = (event: KeyboardEvent): void => {
    const last = items.length - 1;
    const to: Record<string, number> = {
      ArrowDown: at === last ? 0 : at! + 1,
      ArrowUp: at === 0 ? last : at! - 1,
      Home: 0,
      End: last,
    };
    const lettered =
      event.key.length === 1
        ? [...items.keys()]
            .map((step) => (at! + 1 + step) % items.length)
            .find((index) => items[index]!.label.toLowerCase().startsWith(event.key.toLowerCase()))
        : undefined;
    const next = to[event.key] ?? lettered;
    if (event.key === "Tab") setAt(undefined);
    else if (event.key === "Escape") close();
    else if (event.key === "Enter" || event.key === " ") choose(items[at!]!);
    else if (next !== undefined) setAt(next);
    else return;
    if (event.key !== "Tab") event.preventDefault();
    event.stopPropagation();
  };
  const row = (index: number) => {
    const item = items[index]!;
    return (
      <button
        key={item.label}
        type="button"
        role={item.isChecked === undefined ? "menuitem" : "menuitemradio"}
        aria-checked={item.isChecked}
        aria-disabled={item.refusal === undefined ? undefined : "true"}
        tabIndex={index === at ? 0 : -1}
        class={item.kind ?? ""}
        onMouseEnter={() => setAt(index)}
        onClick={() => choose(item)}
      >
        {item.isChecked !== undefined ? (
          <Icon name="check" class={item.isChecked ? "" : "hidden"} />
        ) : (
          item.icon && <Icon name={item.icon} />
        )}
        <span>{item.label}</span>
        {item.refusal && <small>{item.refusal}</small>}
      </button>
    );
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class={`button quiet ${children === undefined ? "bare" : ""} ${given}`}
        aria-label={children === undefined ? label : undefined}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setAt(isOpen ? undefined : 0)}
        onKeyDown={(event) => {
          if (isOpen || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
          event.preventDefault();
          setAt(event.key === "ArrowDown" ? 0 : items.length - 1);
        }}
      >
        {children ?? <Icon name={icon} />}
      </button>
      {isOpen && (
        <div ref={list} id={id} class="menu" role="menu" aria-label={label} popover="manual" onKeyDown={move}>
          {[...Map.groupBy(items.keys(), (index) => items[index]!.group)].map(([group, indexes]) =>
            group === undefined ? (
              indexes.map(row)
            ) : (
              <div key={group} role="group" aria-label={group}>
                <p aria-hidden="true">{group}</p>
                {indexes.map(row)}
              </div>
            ),
          )}
        </div>
      )}
    </>
  );
}
