import type { OpenConsole } from "./browser.ts";

/** Zones with records and settings, as an installation in use has them. */
export async function makeData({
  call,
  platform,
}: OpenConsole): Promise<{ zone: { id: string; name: string } }> {
  const account = { id: platform.accountId };
  const names = ["shop.example", "static.example", "api.example", "intern.example", "magazin.example"];
  const zones = await Promise.all(
    names.map(async (name) => call<{ id: string; name: string }>("POST", "/zones", { name, account })),
  );
  const zone = zones[0]!;
  const records = [
    { type: "A", name: "@", content: "192.0.2.10", proxied: true, comment: "the shop" },
    { type: "AAAA", name: "@", content: "2001:db8::10", proxied: true },
    { type: "CNAME", name: "www", content: "shop.example", proxied: true },
    { type: "A", name: "mail", content: "192.0.2.25", ttl: 3600 },
    { type: "MX", name: "@", content: "mail.shop.example", priority: 10 },
    { type: "TXT", name: "@", content: '"v=spf1 mx -all"' },
    { type: "TXT", name: "_dmarc", content: '"v=DMARC1; p=reject"' },
    { type: "CNAME", name: "status", content: "status.example.net", tags: ["team:ops"] },
    { type: "CAA", name: "@", data: { flags: 0, tag: "issue", value: "letsencrypt.org" } },
    {
      type: "SRV",
      name: "_sip._tcp",
      data: { priority: 10, weight: 5, port: 5060, target: "sip.shop.example" },
    },
    { type: "A", name: "*.preview", content: "192.0.2.77", proxied: true },
  ];
  for (const record of records) await call("POST", `/zones/${zone.id}/dns_records`, record);
  await call("PUT", `/zones/${zone.id}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [
      {
        action: "route",
        description: "The API of the shop",
        expression: 'starts_with(http.request.uri.path, "/api/")',
        action_parameters: {
          origin: { host: "api.example.net", port: 8443 },
          host_header: "api.example.net",
        },
      },
      {
        action: "route",
        description: "Visitors from abroad",
        expression: 'ip.geoip.country ne "DE" and http.host eq "www.shop.example"',
        action_parameters: { origin: { host: "eu.example.net" } },
        enabled: false,
      },
    ],
  });
  await call("PATCH", `/zones/${zone.id}/edge/smart_routing`, { value: "on" });
  await call("PATCH", `/zones/${zone.id}/dnssec`, { status: "active" });
  await call("POST", `/zones/${zone.id}/workers/routes`, { pattern: "shop.example/static/*" });
  await call("PATCH", `/zones/${zones[3]!.id}`, { paused: true });
  return { zone };
}
