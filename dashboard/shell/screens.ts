import type { ComponentType } from "preact";
import { match } from "../core/router.ts";
import type { Route, ScreenProps } from "./route.ts";
import { routes } from "./routes.ts";

/** The route of a path, and the values in it. */
export interface Found {
  route: Route;
  values: Record<string, string>;
}

export function find(path: string): Found | undefined {
  for (const route of routes) {
    const values = match(route.pattern, path);
    if (values !== undefined) return { route, values };
  }
  return undefined;
}

const known = new Map<Route, ComponentType<ScreenProps>>();

/** The code of a screen, if it is loaded. */
export const loaded = (route: Route): ComponentType<ScreenProps> | undefined => known.get(route);

/** Loads the code of a screen. */
export async function loadScreen(route: Route): Promise<ComponentType<ScreenProps>> {
  const screen = (await route.load()).default;
  known.set(route, screen);
  return screen;
}
