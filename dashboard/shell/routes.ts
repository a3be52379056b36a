import { accountRoutes } from "../screens/account/routes.ts";
import { productRoutes } from "../screens/products/routes.ts";
import { zoneRoutes } from "../screens/zone/routes.ts";
import type { Route } from "./route.ts";

/** Every screen. The first pattern that matches wins. */
export const routes: readonly Route[] = [
  {
    pattern: "/:account",
    title: "Overview",
    menu: { icon: "overview", group: "products" },
    keys: "g o",
    load: async () => import("../screens/overview/overview.tsx"),
  },
  ...zoneRoutes,
  ...productRoutes,
  ...accountRoutes,
];
