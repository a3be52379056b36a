import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type ApiResponse, type TestServer } from "../helpers/server.ts";
import { uploadForm } from "../runtime/platform.ts";
import { Customers, type Customer } from "./customers.ts";

/** Zones of two accounts, one inside the other. */
let server: TestServer;
/** Another installation, which serves as the public DNS. */
let world: TestServer;
let customers: Customers;
let shop: Customer;
let rival: Customer;
const folder = mkdtempSync(join(tmpdir(), "selvedge-nesting-"));

beforeAll(async () => {
  world = await startTestServer();
  server = await startTestServer({ edgeTlsListen: "127.0.0.1:0", resolvers: [world.ready.dns] });
  customers = new Customers(server, folder);
  shop = await customers.add("shop");
  rival = await customers.add("rival");
});
afterAll(async () => {
  customers.close();
  await Promise.all([server.close(1000), world.close(1000)]);
  rmSync(folder, { recursive: true });
});

const create = (by: Customer, name: string): Promise<ApiResponse> =>
  by.call("POST", "/zones", { account: { id: by.accountId }, name });
const statusOf = async (by: Customer, id: string): Promise<string> =>
  (await by.call("GET", `/zones/${id}`)).body.result.status as string;
const everywhere = (label: string) => ({ edge: label, dns: label, tls: label });
/** The TXT record that an error message requests. */
const wanted = ({ body }: ApiResponse): { name: string; content: string } => {
  const [, name, content] = /TXT record (\S+) with the content "([\d-]+)"/.exec(body.errors[0]!.message)!;
  return { name: name!, content: content! };
};

it("may be created by the account of the other zone, in both orders", async () => {
  for (const name of ["nested.example", "a.nested.example", "y.other-way.example", "other-way.example"])
    expect((await create(shop, name)).status).toBe(200);
});

it("are rejected for other accounts, with the proof that would allow them", async () => {
  const zone = await shop.zone("held.example");
  await shop.serve(zone, "login.held.example");
  const inside = await create(rival, "login.held.example");
  expect(inside).toMatchObject({
    status: 400,
    body: { errors: [{ code: 1099, source: { pointer: "/body/name" } }] },
  });
  expect(inside.body.errors[0]!.message).toContain("inside the zone held.example of another account");
  expect(inside.body.errors[0]!.message).toContain("Please ensure you are providing the root domain");
  expect((await create(rival, "deep.login.held.example")).status).toBe(400);
  await shop.zone("only.inside.example");
  const around = await create(rival, "inside.example");
  expect(around).toMatchObject({ status: 400, body: { errors: [{ code: 1099 }] } });
  // The message must not reveal the other account's zone.
  expect(around.body.errors[0]!.message).not.toContain("only");
  expect((await create(rival, "held.example")).body.errors[0]!.code).toBe(1061);
  expect(await customers.whose("login.held.example")).toEqual(everywhere("shop"));
});

describe("inside a zone that delegates them", () => {
  const servers = ["ns1.selvedge.localhost", "ns2.selvedge.localhost"];
  let outer: string;
  let inner: string;
  const delegate = async (name: string, to: string[]): Promise<string[]> => {
    const made = [];
    for (const content of to)
      made.push(
        (await shop.call("POST", `/zones/${outer}/dns_records`, { type: "NS", name, content })).body.result
          .id,
      );
    return made as string[];
  };

  it("need all name servers of their account", async () => {
    outer = await shop.zone("delegating.example");
    await shop.serve(outer, "www.delegating.example");
    await delegate("elsewhere", ["ns1.other.example", "ns2.other.example"]);
    await delegate("half", [servers[0]!]);
    for (const name of ["elsewhere", "half"])
      expect((await create(rival, `${name}.delegating.example`)).status).toBe(400);
  });

  it("answer once they are active, and until the delegation is removed", async () => {
    const host = "www.dev.delegating.example";
    await shop.serve(outer, host);
    expect(await customers.whose(host)).toEqual(everywhere("shop"));
    const records = await delegate("dev", servers);
    inner = await rival.zone("dev.delegating.example");
    await rival.serve(inner, host);
    expect(await statusOf(rival, inner)).toBe("active");
    expect(await customers.whose(host)).toEqual(everywhere("rival"));
    expect(await customers.whose("www.delegating.example")).toEqual(everywhere("shop"));

    // A partial delegation does not count.
    await shop.call("DELETE", `/zones/${outer}/dns_records/${records[0]}`);
    expect(await statusOf(rival, inner)).toBe("moved");
    expect(await customers.whose(host)).toMatchObject({ edge: "shop", tls: "shop" });
    await rival.call("PUT", `/zones/${inner}/activation_check`);
    expect(await statusOf(rival, inner)).toBe("moved");

    await delegate("dev", [servers[0]!]);
    await rival.call("PUT", `/zones/${inner}/activation_check`);
    expect(await statusOf(rival, inner)).toBe("active");
    expect(await customers.whose(host)).toEqual(everywhere("rival"));
  });

  it("are independent once the outer zone is deleted, and stay when it is created again", async () => {
    const host = "www.dev.delegating.example";
    await shop.call("DELETE", `/zones/${outer}`);
    expect(await customers.whose(host)).toEqual(everywhere("rival"));
    outer = await shop.zone("delegating.example");
    expect(await statusOf(shop, outer)).toBe("active");
    expect(await customers.whose(host)).toEqual(everywhere("rival"));
  });

  it("may be authorized by a TXT record", async () => {
    const refused = await create(rival, "named.delegating.example");
    const record = { type: "TXT", ...wanted(refused) };
    const { body } = await shop.call("POST", `/zones/${outer}/dns_records`, record);
    const third = await customers.add("third");
    expect((await create(third, "named.delegating.example")).status).toBe(400);
    const zone = await rival.zone("named.delegating.example");
    expect(await statusOf(rival, zone)).toBe("active");
    await shop.call("DELETE", `/zones/${outer}/dns_records/${body.result.id}`);
    expect(await statusOf(rival, zone)).toBe("moved");
    expect((await rival.call("GET", `/zones/${zone}`)).body.result.verification_key).toBe(record.content);
  });

  it("do not take the routes and domains of scripts around them", async () => {
    const account = `/accounts/${shop.accountId}`;
    const upload = async (by: Customer, text: string): Promise<void> => {
      const form = uploadForm(`export default { fetch: () => new Response(${JSON.stringify(text)}) }`);
      await server.client.put(`/accounts/${by.accountId}/workers/scripts/s`, { body: form });
    };
    await upload(shop, "script of shop");
    await upload(rival, "script of rival");
    const host = "app.dev.delegating.example";
    const route = { pattern: "*.delegating.example/*", script: "s" };
    expect((await shop.call("POST", `/zones/${outer}/workers/routes`, route)).status).toBe(200);
    expect((await customers.whose("www.dev.delegating.example")).edge).toBe("rival");

    const put = (by: Customer, hostname: string) =>
      by.call("PUT", `/accounts/${by.accountId}/workers/domains`, { hostname, service: "s" });
    expect(await put(shop, host)).toMatchObject({ status: 409, body: { errors: [{ code: 100115 }] } });
    expect((await put(rival, host)).status).toBe(200);
    expect((await customers.whose(host)).edge).toBe("script of rival");
    // An exact pattern could never match.
    const exact = { pattern: `${host}/*`, script: "s" };
    expect((await shop.call("POST", `/zones/${outer}/workers/routes`, exact)).status).toBe(400);

    // The host is the outer account's again, and with it the domain.
    const [record] = (await shop.call("GET", `/zones/${outer}/dns_records?type=NS`)).body.result as {
      id: string;
    }[];
    expect(record).toBeUndefined(); // it was created again without them
    await shop.call("POST", `/zones/${outer}/dns_records`, { type: "NS", name: "dev", content: servers[0] });
    expect(await statusOf(rival, inner)).toBe("moved");
    expect((await customers.whose(host)).edge).not.toBe("script of rival");
    expect((await put(shop, host)).status).toBe(200);
    expect((await customers.whose(host)).edge).toBe("script of shop");
    expect((await shop.call("GET", `${account}/workers/domains`)).body.result).toMatchObject([
      { hostname: host },
    ]);
  });
});

describe("whose account has proved its ownership in the public DNS", () => {
  const publish = async (
    zone: string,
    { name, content }: { name: string; content: string },
  ): Promise<void> => {
    const id = await world.newZone(zone);
    await world.call("POST", `/zones/${id}/dns_records`, { type: "TXT", name, content });
  };

  it("may contain zones of others, which stay", async () => {
    const before = await rival.zone("early.proved.example");
    await rival.serve(before, "early.proved.example");
    const refused = await create(shop, "proved.example");
    await publish("proved.example", wanted(refused));
    const zone = await shop.zone("proved.example");
    await shop.serve(zone, "late.proved.example");
    expect(await customers.whose("early.proved.example")).toEqual(everywhere("rival"));
    expect(await customers.whose("late.proved.example")).toEqual(everywhere("shop"));
  });

  it("replace a zone of the same name that never became active", async () => {
    // Nothing is delegated to this installation, so its zones stay pending.
    const waiting = await startTestServer({ activation: "dns", resolvers: [world.ready.dns] });
    const others = new Customers(waiting, join(folder, "waiting"));
    const [first, second] = [await others.add("first"), await others.add("second")];
    const squatted = await first.zone("squatted.example");
    expect(await statusOf(first, squatted)).toBe("pending");
    const refused = await create(second, "squatted.example");
    expect(refused.body.errors[0]!).toMatchObject({ code: 1061 });
    await publish("squatted.example", wanted(refused));
    expect((await create(second, "squatted.example")).status).toBe(200);
    expect((await first.call("GET", `/zones/${squatted}`)).status).toBe(404);
    // Each account's audit log tells its own side, and nothing of the other account.
    const [lost, made] = await Promise.all([first, second].map((customer) => newestEntry(customer)));
    expect(lost).toMatchObject({
      account: { id: first.accountId },
      action: { description: "Change zone through a call in another account" },
      actor: { type: "system" },
      resource: { id: squatted, type: "zone" },
      zone: { id: squatted, name: "squatted.example" },
    });
    expect(JSON.stringify(lost)).not.toContain(second.accountId);
    expect(made).toMatchObject({ action: { type: "create" }, account: { id: second.accountId } });
    expect(JSON.stringify(made)).not.toContain(squatted);
    others.close();
    await waiting.close(1000);
  });
});

async function newestEntry(customer: Customer): Promise<unknown> {
  const path = `/accounts/${customer.accountId}/logs/audit?since=2020-01-01&before=2100-01-01&limit=1`;
  return (await customer.call("GET", path)).body.result[0];
}

it("cannot use the installation's own names", async () => {
  const subdomain = (await shop.call("GET", `/accounts/${shop.accountId}/workers/subdomain`)).body.result
    .subdomain as string;
  expect(await create(rival, `${subdomain}.workers.localhost`)).toMatchObject({
    status: 400,
    body: { errors: [{ code: 1097 }] },
  });
});

it("cannot see the targets of other accounts' proxied names", async () => {
  const hidden = await shop.zone("hidden.example");
  await shop.serve(hidden, "www.hidden.example");
  const curious = await rival.zone("curious.example");
  await rival.serve(curious, "www.curious.example");
  const records = `/zones/${curious}/dns_records`;
  const alias = { type: "CNAME", name: "alias", content: "www.hidden.example", proxied: true };
  await rival.call("POST", records, alias);
  expect((await customers.whose("alias.curious.example")).edge).toBe("nobody");
  // The account's own names resolve to their targets.
  await rival.call("POST", records, { ...alias, name: "own", content: "www.curious.example" });
  expect((await customers.whose("own.curious.example")).edge).toBe("rival");
});
