import { afterAll, expect, it } from "vitest";
import { startTestServer } from "../helpers/server.ts";

const server = await startTestServer();
afterAll(() => server.close(1000));
const { client } = server;

it("is read and changed, and setting the same value changes nothing", async () => {
  const zone_id = await server.newZone("routing.example");
  const before = await client.argo.smartRouting.get({ zone_id });
  expect(before).toMatchObject({ id: "smart_routing", value: "off", editable: true });
  const on = await client.argo.smartRouting.edit({ zone_id, value: "on" });
  expect(on.value).toBe("on");
  expect(await client.argo.smartRouting.edit({ zone_id, value: "on" })).toEqual(on);
  const { body } = await server.call("GET", `/zones/${zone_id}/edge/smart_routing`);
  expect(body.result).toEqual(on);
  expect(
    (await server.call("PATCH", `/zones/${zone_id}/edge/smart_routing`, { value: "maybe" })).status,
  ).toBe(400);
});

it("is not editable without the plan's feature or with a read-only token", async () => {
  const zone_id = await server.newZone("free.example");
  await server.call("PATCH", `/zones/${zone_id}`, { plan: { id: "free" } });
  expect((await client.argo.smartRouting.get({ zone_id })).editable).toBe(false);
  await expect(client.argo.smartRouting.edit({ zone_id, value: "on" })).rejects.toMatchObject({
    status: 403,
    errors: [{ code: 1015 }],
  });
  const paid = await server.newZone("paid.example");
  const reader = await server.clientWith("Smart Routing Read", {
    [`com.cloudflare.api.account.zone.${paid}`]: "*",
  });
  expect((await reader.argo.smartRouting.get({ zone_id: paid })).editable).toBe(false);
  await expect(reader.argo.smartRouting.edit({ zone_id: paid, value: "on" })).rejects.toMatchObject({
    status: 403,
  });
});
