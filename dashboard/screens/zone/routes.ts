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
  {
    pattern: `${zone}/dns`,
    title: "DNS records",
    tab: "DNS",
    needs: "dns_records:read",
    load: async () => import("./dns/dns.tsx"),
  },
  {
    pattern: `${zone}/rules`,
    title: "Origin rules",
    tab: "Rules",
    needs: "origin_rules:read",
    load: async () => import("./rules/rules.tsx"),
  },
  {
    pattern: `${zone}/snippets`,
    title: "Snippets",
    tab: "Snippets",
    needs: "snippets:read",
    load: async () => import("./snippets/snippets.tsx"),
  },
  {
    pattern: `${zone}/routes`,
    title: "Routes",
    tab: "Routes",
    needs: "workers_routes:read",
    load: async () => import("./routes/routes-screen.tsx"),
  },
  {
    pattern: `${zone}/trace`,
    title: "Trace",
    tab: "Trace",
    needs: "request_tracer:read",
    load: async () => import("./trace/zone-trace.tsx"),
  },
  {
    pattern: `${zone}/tls`,
    title: "TLS",
    tab: "TLS",
    needs: "ssl_certificates:read",
    load: async () => import("./tls/tls.tsx"),
  },
  {
    pattern: `${zone}/routing`,
    title: "Smart routing",
    tab: "Smart routing",
    needs: "smart_routing:read",
    load: async () => import("./smart-routing/smart-routing.tsx"),
  },
  {
    pattern: `${zone}/transfers`,
    title: "Transfers",
    tab: "Transfers",
    needs: "dns_records:read",
    load: async () => import("./transfers/transfers.tsx"),
  },
  {
    pattern: `${zone}/settings`,
    title: "DNS settings",
    tab: "DNS settings",
    needs: "dns_records:read",
    load: async () => import("./dns-settings/dns-settings.tsx"),
  },
];
