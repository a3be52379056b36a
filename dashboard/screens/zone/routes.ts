import type { Route } from "../../shell/route.ts";

const zone = "/:account/zones/:zone";

/** The list of zones, and the screens of one zone. The order of the tabs is that of this list. */
export const zoneRoutes: readonly Route[] = [
  {
    pattern: "/:account/zones",
    title: "Zones",
    menu: { icon: "zones", group: "products" },
    keys: "g z",
    load: async () => import("../zones/zones.tsx"),
  },
  { pattern: zone, title: "Overview", tab: "Overview", load: async () => import("./overview/overview.tsx") },
];
