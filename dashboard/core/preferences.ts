import { store, type Store } from "./store.ts";

/** A preference in the browser's local storage, which must not hold secrets. */
function kept<T extends string>(name: string, byDefault: T, values: readonly T[]): Store<T> {
  const read = localStorage.getItem(name) as T | null;
  const value = store<T>(read !== null && values.includes(read) ? read : byDefault);
  value.listen(() => localStorage.setItem(name, value.get()));
  return value;
}

export type Theme = "system" | "light" | "dark";
export const theme = kept<Theme>("selvedge-theme", "system", ["system", "light", "dark"]);
theme.listen(() => {
  if (theme.get() === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme.get();
});

const keysChoice = kept<"on" | "off">("selvedge-keys", "on", ["on", "off"]);
/** Whether single letters are keys of the console (WCAG 2.1.4). */
export const singleKeys: Store<boolean> = {
  get: () => keysChoice.get() === "on",
  set: (value) => keysChoice.set(value ? "on" : "off"),
  listen: (listener) => keysChoice.listen(listener),
};
