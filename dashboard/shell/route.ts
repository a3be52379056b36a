import type { ComponentType } from "preact";
import type { IconName } from "../parts/icon.tsx";

/** The properties of a screen. `params` are the values of its pattern, without account and zone. */
export interface ScreenProps {
  account: string;
  params: Readonly<Record<string, string>>;
}

/** A screen: its address, its place in the menu, and its code, which is loaded when it is opened. */
export interface Route {
  /** Path below /dashboard: "/:account/queues/:queue". Patterns below "/:account/zones/:zone" get the frame of the zone. */
  pattern: string;
  title: string;
  load: () => Promise<{ default: ComponentType<ScreenProps> }>;
  /** The permission that the screen needs. Without it, the menu omits the screen, and the screen names the permission. */
  needs?: string;
  /** Its entry in the menu at the left. */
  menu?: { icon: IconName; group: "products" | "account" };
  /** Its position among the tabs of its frame. */
  tab?: string;
  /** Two keys: "g z" anywhere, or "z d" for a tab of the zone. */
  keys?: string;
  /** Further words under which the palette finds it, such as "import, zone file". */
  words?: string;
  /** The label of its shortcut that makes a new thing: the palette offers it from everywhere. */
  makes?: string;
  /** Keeps the screen out of the palette, because its path needs a value that the palette does not have. */
  isInner?: boolean;
}
