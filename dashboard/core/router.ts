import { store, useStore } from "./store.ts";
import { isHeld, leave } from "./unsaved.ts";

/** The current location: the path below /dashboard, and the query. */
export interface Location {
  path: string;
  query: URLSearchParams;
}

const base = "/dashboard";

const read = (): Location => ({
  path: location.pathname.slice(base.length) || "/",
  query: new URLSearchParams(location.search),
});
const current = store<Location>(read());
let shownUrl = location.href;

/** Shows the screen of the address. */
function show(): void {
  shownUrl = location.href;
  current.set(read());
}

addEventListener("popstate", () => {
  if (!isHeld()) return show();
  // The browser has left the address already: it returns until the person agrees to lose the input.
  history.pushState(null, "", shownUrl);
  leave(() => history.back());
});

/** The address of a path of the console, for `href`. Names in the path are encoded already. */
export const href = (path: string): string => `${base}${path}`;

/** Goes to a path of the console, which may have a query. Unsaved input is not lost without a question. */
export function navigate(path: string, { replace = false }: { replace?: boolean } = {}): void {
  leave(() => {
    if (replace) history.replaceState(null, "", href(path));
    else history.pushState(null, "", href(path));
    show();
    if (!replace) scrollTo(0, 0);
  });
}

export const currentPath = (): string => current.get().path;
export const useLocation = (): Location => useStore(current);

/** A value in the query of the address. Empty text and the default are not written. */
export function useSearch(
  name: string,
  byDefault = "",
): [string, (value: string, replace?: boolean) => void] {
  const { query } = useLocation();
  return [
    query.get(name) ?? byDefault,
    (value, replace = true) => setSearch({ [name]: value === byDefault ? "" : value }, replace),
  ];
}

/** Changes several values of the query at once. */
export function setSearch(values: Record<string, string>, replace = true): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  const url = `${location.pathname}${text === "" ? "" : `?${text}`}`;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  show();
}

/** Links of the console are followed without loading the page. */
document.addEventListener("click", (event) => {
  if (
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  )
    return;
  const link = (event.target as Element).closest("a");
  if (link === null || link.target !== "" || link.hasAttribute("download") || link.origin !== location.origin)
    return;
  if (!link.pathname.startsWith(`${base}/`)) return;
  event.preventDefault();
  navigate(link.href.slice(link.origin.length + base.length));
});

/** The values of a pattern such as "/:account/zones" in a path; undefined if it does not match. */
export function match(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split("/"), path.replace(/(?<=.)\/$/, "").split("/")];
  const rest = wanted.at(-1)?.startsWith("*") === true;
  if (rest ? given.length < wanted.length : given.length !== wanted.length) return undefined;
  const values: Record<string, string> = {};
  for (const [index, segment] of wanted.entries()) {
    if (segment.startsWith("*")) values[segment.slice(1)] = given.slice(index).join("/");
    else if (segment.startsWith(":")) {
      if (given[index] === "") return undefined;
      values[segment.slice(1)] = decoded(given[index]!);
    } else if (segment !== given[index]) return undefined;
  }
  return values;
}

/** Decodes a path segment. A malformed escape, as in a truncated link, stays as it is, and so names nothing. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
