import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";
import { call, deploy } from "./helpers.ts";

let edge: Selvedge;
beforeAll(async () => {
  edge = await startSelvedge({ seed: "states" });
});
afterAll(() => edge.close());
beforeEach(() => edge.reset());

const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const source = `
import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  async add() {
    const count = ((await this.ctx.storage.get("count")) ?? 0) + 1;
    await this.ctx.storage.put("count", count);
    return count;
  }
}
export default { async fetch(request, env) {
  return Response.json(await env.COUNTER.get(env.COUNTER.idFromName("one")).add());
} };`;

/** Everything that has bytes or files of its own. */
class Shop {
  readonly edge: Selvedge;
  readonly account: string;
  namespace = "";
  database = "";
  image = "";

  constructor(platform: Selvedge) {
    this.edge = platform;
    this.account = `/accounts/${platform.accountId}`;
  }

  /** The same shop on another platform. */
  on(other: Selvedge): Shop {
    const { namespace, database, image } = this;
    return Object.assign(new Shop(other), { namespace, database, image });
  }

  async create(): Promise<void> {
    await deploy(this.edge, "counter", source, undefined, {
      bindings: [{ type: "durable_object_namespace", name: "COUNTER", class_name: "Counter" }],
      migrations: { new_tag: "v1", new_sqlite_classes: ["Counter"] },
    });
    const { id } = await call<{ id: string }>(this.edge, "POST", `${this.account}/storage/kv/namespaces`, {
      title: "kv",
    });
    this.namespace = id;
    await this.createDatabase();
  }

  async createDatabase(): Promise<void> {
    const { uuid } = await call<{ uuid: string }>(this.edge, "POST", `${this.account}/d1/database`, {
      name: "shop",
    });
    this.database = uuid;
    await this.query("create table orders (id integer primary key, what text)");
  }

  count = async (): Promise<number> =>
    (await (await this.edge.fetchScript("counter", "https://any.example/")).json()) as number;

  async query(sql: string): Promise<unknown[]> {
    const path = `${this.account}/d1/database/${this.database}/query`;
    const [{ results } = { results: [] }] = await call<{ results: unknown[] }[]>(this.edge, "POST", path, {
      sql,
    });
    return results;
  }

  async put(value: string): Promise<void> {
    await fetch(`${this.edge.urls.api}${this.account}/storage/kv/namespaces/${this.namespace}/values/large`, {
      method: "PUT",
      headers: { authorization: `Bearer ${this.edge.token}` },
      body: value.repeat(2_000_000),
    });
  }

  async value(): Promise<string> {
    const url = `${this.edge.urls.api}${this.account}/storage/kv/namespaces/${this.namespace}/values/large`;
    const answer = await fetch(url, { headers: { authorization: `Bearer ${this.edge.token}` } });
    return `${answer.status} ${(await answer.text()).slice(0, 3)}`;
  }

  async upload(): Promise<void> {
    const form = new FormData();
    form.set("file", new File([pixel], "pixel.png", { type: "image/png" }));
    this.image = (await call<{ id: string }>(this.edge, "POST", `${this.account}/images/v1`, form)).id;
  }

  async original(): Promise<string> {
    const url = `${this.edge.urls.api}${this.account}/images/v1/${this.image}/blob`;
    const answer = await fetch(url, { headers: { authorization: `Bearer ${this.edge.token}` } });
    return `${answer.status} ${Buffer.from(await answer.arrayBuffer()).equals(pixel)}`;
  }

  seen = async (): Promise<unknown[]> => [
    await this.count(),
    await this.query("select what from orders order by id"),
    await this.value(),
    await this.original(),
  ];
}

describe("states with bytes and files", () => {
  let shop: Shop;
  beforeEach(async () => {
    shop = new Shop(edge);
    await shop.create();
    await shop.query("insert into orders (what) values ('bread')");
    await shop.put("old");
    await shop.upload();
    await shop.count();
  });
  const changed = async (): Promise<void> => {
    await shop.count();
    await shop.query("insert into orders (what) values ('butter')");
    await shop.put("new");
    await call(edge, "DELETE", `${shop.account}/images/v1/${shop.image}`);
  };
  const before = [2, [{ what: "bread" }], "200 old", "200 true"];

  it("a restore brings back objects, D1, large values and images", async () => {
    await edge.snapshot("bread");
    await changed();
    expect(await shop.seen()).toEqual([3, [{ what: "bread" }, { what: "butter" }], "200 new", "404 false"]);
    await edge.restore("bread");
    expect(await shop.seen()).toEqual(before);
    // The copy was not changed by the calls since.
    await changed();
    await edge.restore("bread");
    expect(await shop.seen()).toEqual(before);
  });

  it("after a reset, a namespace with the same id begins empty", async () => {
    const { namespace, database } = shop;
    await edge.reset();
    shop = new Shop(edge);
    await shop.create();
    expect([shop.namespace, shop.database]).toEqual([namespace, database]);
    expect([await shop.count(), await shop.query("select what from orders"), await shop.value()]).toEqual([
      1,
      [],
      expect.stringMatching(/^404/),
    ]);
    // Also if the test itself deleted it, and its process still runs.
    await call(edge, "DELETE", `${shop.account}/d1/database/${database}`);
    await edge.reset();
    await shop.createDatabase();
    expect([shop.database, await shop.query("select what from orders")]).toEqual([database, []]);
  });

  it("a fork and a saved file have them too, and neither sees the other", async () => {
    await using fork = await edge.fork();
    expect(await shop.on(fork).seen()).toEqual(before);
    expect(await shop.count()).toBe(2);
    const folder = mkdtempSync(join(tmpdir(), "selvedge-state-"));
    const file = join(folder, "state");
    await fork.save(file);
    await using other = await startSelvedge({ state: file, settings: { apiToken: edge.token } });
    rmSync(folder, { recursive: true });
    expect(await shop.on(other).seen()).toEqual([3, ...before.slice(1)]);
    await other.reset();
    expect(await shop.on(other).seen()).toEqual([3, ...before.slice(1)]);
  });
});

/** The answers about a zone and what is in it. */
async function seen(): Promise<object> {
  const names = [
    "shop.example",
    "www.shop.example",
    "a.wild.shop.example",
    "n1.shop.example",
    "new.shop.example",
  ];
  const resultOrCode = (answer: Promise<unknown>) =>
    answer.catch((error: unknown) => (error as { code: string }).code);
  const pages = names.map(async (name) => (await edge.fetch(`http://${name}/`)).status);
  return {
    state: await edge.state(),
    addresses: await Promise.all(names.map((name) => resultOrCode(edge.dig(name)))),
    authority: await resultOrCode(edge.dig("shop.example", "SOA")),
    pages: await Promise.all(pages),
  };
}

describe("a restore of a large zone", () => {
  let zone: string;
  const many = (from: number, to: number): FormData => {
    const form = new FormData();
    const lines = Array.from({ length: to - from }, (_, i) => `n${from + i} 60 IN A 192.0.2.1\n`);
    form.set("file", new File([lines.join("")], "shop.zone"));
    return form;
  };
  const created = async (name: string): Promise<string> => {
    const body = { account: { id: edge.accountId }, name, type: "full" };
    return (await call<{ id: string }>(edge, "POST", "/zones", body)).id;
  };
  const add = async (of: string, body: object): Promise<unknown> =>
    call(edge, "POST", `/zones/${of}/dns_records`, { type: "A", content: "127.0.0.1", ttl: 60, ...body });
  const find = async (name: string): Promise<string> => {
    const found = await call<{ id: string }[]>(edge, "GET", `/zones/${zone}/dns_records?name=${name}`);
    return `/zones/${zone}/dns_records/${found[0]!.id}`;
  };
  beforeEach(async () => {
    zone = await created("shop.example");
    await call(edge, "POST", `/zones/${zone}/dns_records/import`, many(0, 1000));
    await add(zone, { name: "www", proxied: true, ttl: 1 });
    await add(zone, { name: "*.wild", proxied: true, ttl: 1 });
    const status = async () => (await call<{ status: string }>(edge, "GET", `/zones/${zone}`)).status;
    await expect.poll(status).toBe("active");
    await edge.snapshot("large");
  });

  it("brings its answers back after any change", async () => {
    const expected = await seen();
    const changes: Record<string, () => Promise<unknown>> = {
      "a record is added": () => add(zone, { name: "new", proxied: true, ttl: 1 }),
      "a record is deleted": async () => call(edge, "DELETE", await find("n1.shop.example")),
      "a record is renamed": async () =>
        call(edge, "PATCH", await find("www.shop.example"), { name: "new.shop.example" }),
      "a wildcard is gone": async () => call(edge, "DELETE", await find("*.wild.shop.example")),
      "the zone is paused": () => call(edge, "PATCH", `/zones/${zone}`, { paused: true }),
      "the zone is signed": () => call(edge, "PATCH", `/zones/${zone}/dnssec`, { status: "active" }),
      "many records are added": () =>
        call(edge, "POST", `/zones/${zone}/dns_records/import`, many(1000, 1800)),
      "the zone is deleted": () => call(edge, "DELETE", `/zones/${zone}`),
      "the zone is made again": async () => {
        await call(edge, "DELETE", `/zones/${zone}`);
        await add(await created("shop.example"), { name: "n1", content: "192.0.2.9" });
      },
      "there is a zone inside": async () => {
        await add(await created("www.shop.example"), { name: "@", content: "192.0.2.9" });
      },
    };
    for (const [what, change] of Object.entries(changes)) {
      await change();
      expect(await seen(), what).not.toEqual(expected);
      await edge.restore("large");
      expect(await seen(), what).toEqual(expected);
    }
    // Without a change, and to the start and back.
    await edge.restore("large");
    await edge.reset();
    await edge.restore("large");
    expect(await seen()).toEqual(expected);
  });
});
