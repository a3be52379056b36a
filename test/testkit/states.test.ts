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
