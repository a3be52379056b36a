import { useEffect } from "preact/hooks";
import { singleKeys } from "./preferences.ts";

/** Keys as text: one letter, two letters with a space ("g z"), or "mod+k" for Ctrl or ⌘. */
export interface Shortcut {
  keys: string;
  label: string;
  /** The section of the help that lists it. */
  group?: string;
  run(): void;
}

const active = new Set<readonly Shortcut[]>();
let first: { key: string; at: number } | undefined;
const pairMs = 1200;

/** All shortcuts that are active now, those of the newest screen first. */
export const shortcuts = (): Shortcut[] => [...active].toReversed().flat();

let awaited: { label: string; until: number } | undefined;
const awaitedMs = 5000;

/** Runs a shortcut of the next screen as soon as it is active. */
export function runWhenActive(label: string): void {
  awaited = { label, until: performance.now() + awaitedMs };
}

/** Shortcuts that are active while the component is mounted. */
export function useShortcuts(list: readonly Shortcut[]): void {
  useEffect(() => {
    active.add(list);
    const next = list.find(({ label }) => label === awaited?.label);
    if (next !== undefined) {
      const isInTime = performance.now() < awaited!.until;
      awaited = undefined;
      if (isInTime) next.run();
    }
    return () => {
      active.delete(list);
    };
  });
}

const isField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

function keyOf(event: KeyboardEvent): string {
  const modified = event.ctrlKey || event.metaKey;
  return `${modified ? "mod+" : ""}${event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  const key = keyOf(event);
  const isSingle = !key.startsWith("mod+");
  if (isSingle && (isField(event.target) || !singleKeys.get() || key.length > 1)) return;
  if (isSingle && document.querySelector("dialog[open]") !== null) return;
  const pair = first !== undefined && event.timeStamp - first.at < pairMs ? `${first.key} ${key}` : undefined;
  const list = shortcuts();
  const found = list.find(({ keys }) => keys === pair) ?? list.find(({ keys }) => keys === key);
  first =
    isSingle && list.some(({ keys }) => keys.startsWith(`${key} `))
      ? { key, at: event.timeStamp }
      : undefined;
  if (found === undefined) return;
  event.preventDefault();
  found.run();
});
