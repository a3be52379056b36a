import type { ComponentType } from "preact";
import type { IconName } from "../parts/icon.tsx";

/** The properties of a screen. `params` are the values of its pattern, without account and zone. */
export interface ScreenProps {
  account: string;
  params: Readonly<Record<string, string>>;
}

/** A screen: its address, its place in the menu, and its code, which is loaded when it is opened. */
export interface Route {
  /** Below /dashboard: "/:account/queues/:queue". A pattern with "/:account/zones/:zone" stands in the frame of the zone. */
  pattern: string;
  title: string;
  load: () => Promise<{ default: ComponentType<ScreenProps> }>;
  /** The permission without which the screen is not in the menu, and says what is missing. */
  needs?: string;
  /** In the menu at the left. */
  menu?: { icon: IconName; group: "products" | "account" };
  /** The place among the tabs of its frame. */
  tab?: string;
  /** Two keys, such as "g z". */
  keys?: string;
  /** Not in the palette: it needs a value that the palette does not have. */
  isInner?: boolean;
}
