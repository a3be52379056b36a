import type { Route } from "../../shell/route.ts";

/** Screens of the account itself. */
export const accountRoutes: readonly Route[] = [];
