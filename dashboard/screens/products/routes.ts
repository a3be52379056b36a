import type { Route } from "../../shell/route.ts";

/** Screens of scripts, queues, key-value, workflows, images and the other products of an account. */
export const productRoutes: readonly Route[] = [
  {
    pattern: "/:account/images",
    title: "Images",
    needs: "images:read",
    menu: { icon: "images", group: "products" },
    keys: "g i",
    load: async () => import("../images/playground.tsx"),
  },
];
