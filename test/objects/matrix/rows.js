/*
 * The rows of the matrix: a script that calls its objects from a request ("cell": the objects are in another cell) and
 * from an object ("object": the called object is in the same cell).
 */
import { DurableObject, RpcTarget, WorkerEntrypoint } from "cloudflare:workers";

const deepBad = (n) =>
  n === 0
    ? {
        get bad() {
          throw new Error("deep");
        },
      }
    : { in: deepBad(n - 1) };
class Tally extends RpcTarget {
  get bad() {
    throw new Error("bad target");
  }
  #n = 0;
  inc(by = 1) {
    return (this.#n += by);
  }
  get now() {
    return this.#n;
  }
}
/** Objects are named by the place of their caller and the row. */
const nameOf = ({ id }) => id.name.replace(/^\w+ /, "room ");
let constructions = 0;

export class Room extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.serial = ++constructions;
    ctx.blockConcurrencyWhile(async () => {
      await scheduler.wait(1);
      this.isReady = true;
    });
  }

  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/upload")
      return new Response(`${(await request.arrayBuffer()).byteLength}`, {
        headers: { "x-type": request.headers.get("x-type") },
      });
    if (pathname === "/redirect")
      return new Response(null, { status: 302, headers: { location: "/elsewhere" } });
    if (pathname === "/boom") throw Object.assign(new RangeError("fetch boom"), { detail: 1 });
    if (pathname === "/slowly") {
      const { readable, writable } = new TransformStream();
      const writer = writable.getWriter();
      this.ctx.waitUntil(
        (async () => {
          for (const part of ["a", "b", "c"]) {
            await writer.write(new TextEncoder().encode(part));
            await scheduler.wait(1);
          }
          await writer.close();
        })(),
      );
      return new Response(readable);
    }
    return Response.json({ method: request.method, pathname, name: nameOf(this.ctx) });
  }

  // Values
  echo(...values) {
    return values.length === 1 ? values[0] : values;
  }
  kindOf(value) {
    return Object.prototype.toString.call(value);
  }
  get bad() {
    throw new RangeError("bad getter");
  }
  get title() {
    return nameOf(this.ctx);
  }
  get shape() {
    return { inner: { deep: 7 }, list: [1, 2] };
  }
  tally() {
    return new Tally();
  }
  nested() {
    return { tally: new Tally(), double: (n) => n * 2 };
  }
  async twice(f) {
    return (await f(1)) + (await f(2));
  }
  async useTarget(target) {
    return [await target.inc(2), await target.inc(), await target.now];
  }
  adder(n) {
    return (m) => n + m;
  }
  async keep(f) {
    this.kept = f.dup();
  }
  async useKept() {
    return this.kept(5);
  }
  stream() {
    return new Blob(["streamed"]).stream();
  }
  async read(stream) {
    return new Response(stream).text();
  }
  async write(writable) {
    const w = writable.getWriter();
    await w.write(new TextEncoder().encode("written"));
    await w.close();
    return "closed";
  }
  sink() {
    const { readable, writable } = new IdentityTransformStream();
    this.sunk = new Response(readable).text();
    return writable;
  }
  async readSunk() {
    return this.sunk;
  }
  respond() {
    return new Response("a response", { status: 201, headers: { "x-own": "1" } });
  }
  async readResponse(response) {
    return `${response.status} ${await response.text()}`;
  }
  request() {
    return new Request("http://x/y", { method: "POST", body: "asked", headers: { "x-own": "2" } });
  }
  async readRequest(request) {
    return `${request.method} ${request.url} ${request.headers.get("x-own")} ${await request.text()}`;
  }
  headers(headers) {
    return new Headers([...headers, ["b", "2"]]);
  }

  // Stubs as values
  async callOther(stub, ...args) {
    return stub.echo(...args);
  }
  async fetchOther(stub) {
    return (await stub.fetch("http://object/other")).json();
  }
  other(name) {
    return this.env.ROOMS.getByName(name);
  }
  others() {
    return { list: [this.env.ROOMS.getByName("x1"), this.env.ROOMS.getByName("x2")] };
  }
  async keepOther(stub) {
    this.otherStub = stub.dup?.() ?? stub;
  }
  async useOther() {
    return this.otherStub.echo("still");
  }
  service() {
    return this.env.SELF;
  }
  async useService(service) {
    return [await service.hello("you"), await (await service.fetch("http://s/via")).text()];
  }

  // Errors
  getterInMap() {
    return new Map([
      [
        "a",
        {
          get bad() {
            throw new Error("getter");
          },
        },
      ],
    ]);
  }
  boom() {
    throw Object.assign(new RangeError("too much"), { detail: 7, list: [1] });
  }
  boomText() {
    throw "only text";
  }
  async boomLater() {
    await scheduler.wait(1);
    throw new TypeError("later");
  }
  boomCause() {
    throw new Error("outer", { cause: new Error("inner") });
  }
  getterThrows() {
    return {
      get bad() {
        throw new Error("getter");
      },
    };
  }
  badStream() {
    return new ReadableStream({
      type: "bytes",
      pull() {
        throw new Error("bad pull");
      },
    });
  }
  badErrorOwn() {
    const e = new Error("bad error");
    Object.defineProperty(e, "bad", {
      get() {
        throw new Error("inner");
      },
      enumerable: true,
    });
    throw e;
  }
  deepBad() {
    return deepBad(12);
  }
  async badStored() {
    const bad = {
      get bad() {
        throw new Error("stored");
      },
    };
    const put = await this.ctx.storage.put("bad", bad).then(
      () => "put",
      (e) => e.message,
    );
    try {
      this.ctx.storage.kv.put("bad", bad);
    } catch (e) {
      return [put, e.message];
    }
  }
  symbol() {
    return Symbol("s");
  }
  weak() {
    return new WeakMap();
  }
  instance() {
    return new (class Own {
      a = 1;
    })();
  }
  async catches(f) {
    try {
      await f();
      return "no error";
    } catch (e) {
      return `${e.name}: ${e.message} ${e.detail}`;
    }
  }

  // The context
  identity() {
    const { id, props } = this.ctx;
    return {
      id: id.toString(),
      name: nameOf(this.ctx),
      equals: id.equals(this.env.ROOMS.idFromName(id.name)),
      props,
      isReady: this.isReady,
    };
  }
  async abort() {
    this.ctx.abort(new Error("gone on purpose"));
    await scheduler.wait(1000);
  }
  abortSilently() {
    this.ctx.abort();
  }
  serialOf() {
    return this.serial;
  }
  async later() {
    this.ctx.waitUntil(scheduler.wait(5).then(() => this.ctx.storage.put("later", "done")));
    return "at once";
  }
  async laterValue() {
    return this.ctx.storage.get("later");
  }
  async block() {
    const seen = [];
    const blocked = this.ctx.blockConcurrencyWhile(async () => {
      seen.push("in");
      await scheduler.wait(5);
      seen.push("out");
      return "value";
    });
    return [await blocked, seen];
  }
  async blockFails() {
    return this.ctx.blockConcurrencyWhile(async () => {
      throw new Error("blocked failed");
    });
  }

  // Storage
  sql() {
    const { sql } = this.ctx.storage;
    sql.exec("drop table if exists t; create table t (id integer primary key, text, data blob)");
    const written = sql.exec(
      "insert into t (text, data) values (?, ?), (?, ?)",
      "a",
      new Uint8Array([1]).buffer,
      "b",
      null,
    );
    const cursor = sql.exec("select id, text from t order by id");
    return {
      rowsWritten: written.rowsWritten > 0,
      columnNames: cursor.columnNames,
      next: cursor.next().value,
      rest: cursor.toArray(),
      raw: [...sql.exec("select text from t order by id").raw()],
      one: sql.exec("select count(*) as n from t").one(),
      size: sql.databaseSize > 0,
      blob: sql.exec("select data from t where id = 1").one().data.byteLength,
    };
  }
  sqlRefused() {
    const refused = {};
    for (const [name, text] of Object.entries({
      attach: "attach database 'x' as y",
      begin: "begin",
      hidden: "select * from _cf_KV",
      syntax: "selec 1",
      one: "select 1 union select 2",
      pragma: "pragma journal_mode",
    }))
      try {
        this.ctx.storage.sql.exec(text).one();
        refused[name] = "ran";
      } catch (e) {
        refused[name] = e.message;
      }
    return refused;
  }
  transactionSync() {
    const { storage } = this.ctx;
    storage.sql.exec("create table if not exists tx (n)");
    const kept = storage.transactionSync(() => {
      storage.sql.exec("insert into tx values (1)");
      return "kept";
    });
    let thrown;
    try {
      storage.transactionSync(() => {
        storage.sql.exec("insert into tx values (2)");
        throw new Error("back");
      });
    } catch (e) {
      thrown = e.message;
    }
    return [
      kept,
      thrown,
      storage.sql
        .exec("select n from tx")
        .toArray()
        .map(({ n }) => n),
    ];
  }
  async transaction() {
    const { storage } = this.ctx;
    await storage.transaction(async (txn) => {
      await txn.put("t1", 1);
    });
    const failed = await storage
      .transaction(async (txn) => {
        await txn.put("t2", 2);
        throw new Error("undone");
      })
      .catch((e) => e.message);
    await storage.transaction(async (txn) => {
      await txn.put("t3", 3);
      txn.rollback();
    });
    return [failed, [...(await storage.list({ prefix: "t" }))]];
  }
  kvSync() {
    const { kv } = this.ctx.storage;
    kv.put("k1", { a: new Date(0) });
    kv.put("k2", 2);
    return [
      kv.get("k1"),
      [...kv.list({ prefix: "k", reverse: true })].map(([key]) => key),
      kv.delete("k1"),
      kv.get("k1"),
      kv.delete("k1"),
    ];
  }
  async kvAsync() {
    const { storage } = this.ctx;
    await storage.put({ a1: 1, a2: new Map([["m", 1]]) });
    await storage.put("a3", 3, { allowUnconfirmed: true });
    await storage.sync();
    return [
      [...(await storage.get("a2"))],
      [...(await storage.get(["a1", "a3", "a9"]))],
      [...(await storage.list({ start: "a2", end: "a4" })).keys()],
      await storage.delete(["a1", "a9"]),
      await storage.get("a1"),
    ];
  }
  async deleteAll() {
    await this.ctx.storage.put("x", 1);
    await this.ctx.storage.deleteAll();
    return (await this.ctx.storage.list()).size;
  }

  // Calls out of an object
  async out() {
    const { env } = this;
    await env.KV.put("key", "from an object");
    await env.QUEUE.send({ from: "object" });
    await env.DB.exec("create table if not exists d (n)");
    await env.DB.prepare("insert into d values (?)").bind(1).run();
    return {
      fetch: await (await fetch(env.OUTSIDE)).text(),
      kv: await env.KV.get("key"),
      d1: (await env.DB.prepare("select count(*) as n from d").first()).n > 0,
      service: await (await env.SELF.fetch("http://s/via")).text(),
      rpc: await env.SELF.hello("object"),
      dispatch: await (await env.SHOPS.get("shop").fetch("http://shop/")).text(),
      object: await env.ROOMS.getByName("elsewhere").echo("hi"),
    };
  }
}

export class Named extends WorkerEntrypoint {
  hello(name) {
    return `hello ${name}`;
  }
  fetch() {
    return new Response("named");
  }
}

const caught = async (f) => {
  try {
    return await f();
  } catch (e) {
    return { thrown: `${e.name}: ${e.message}`, ...e };
  }
};
const text = (value) => new Response(value).text();
const bytes = (n) => new Uint8Array(n);

/** Each row gets a stub of an object of its own, and `env`. */
const rows = {
  echo: async (s) => {
    const cycle = { a: 1 };
    cycle.self = cycle;
    const back = await s.echo(
      new Date(5),
      new Map([[1, new Set(["x"])]]),
      /a+/g,
      10n,
      undefined,
      null,
      new Uint8Array([1, 2]),
      cycle,
      new Error("as value"),
      -0,
      NaN,
      { "a b": [1, [2]] },
    );
    const [date, map, regexp, bigint, undef, nul, array, self, error, zero, nan, plain] = back;
    return [
      date.getTime(),
      map.get(1).has("x"),
      String(regexp),
      String(bigint),
      undef === undefined,
      nul,
      [...array],
      self.self === self,
      error.message,
      Object.is(zero, -0),
      Number.isNaN(nan),
      plain,
    ];
  },
  large: async (s) => (await s.echo(bytes(5_000_000))).length,
  property: (s) => s.title,
  propertyPath: async (s) => [await s.shape.inner.deep],
  pipelined: async (s) => [await s.tally().inc(), await s.nested().double(4), await s.nested().tally.inc(3)],
  target: async (s) => {
    using t = await s.tally();
    await t.inc();
    return [await t.inc(5), await t.now];
  },
  nestedTarget: async (s) => {
    const n = await s.nested();
    return [await n.tally.inc(), await n.double(21)];
  },
  callback: (s) => s.twice((n) => n * 10),
  targetGiven: (s) => s.useTarget(new Tally()),
  functionReturned: async (s) => {
    using f = await s.adder(2);
    return f(3);
  },
  promiseGiven: (s) => s.echo(s.adder(2)(3)),
  stream: async (s) => text(await s.stream()),
  streamGiven: (s) => s.read(new Blob(["given"]).stream()),
  writableGiven: async (s) => {
    const { readable, writable } = new IdentityTransformStream();
    const read = text(readable);
    return [await s.write(writable), await read];
  },
  writable: async (s) => {
    const w = (await s.sink()).getWriter();
    await w.write(new TextEncoder().encode("sunk"));
    await w.close();
    return s.readSunk();
  },
  response: async (s) => {
    const r = await s.respond();
    return [r.status, r.headers.get("x-own"), await r.text()];
  },
  responseGiven: (s) => s.readResponse(new Response("mine", { status: 202 })),
  request: async (s) => {
    const r = await s.request();
    return [r.method, r.url, r.headers.get("x-own"), await r.text()];
  },
  requestGiven: (s) =>
    s.readRequest(new Request("http://x/z", { method: "PUT", body: "body", headers: { "x-own": "3" } })),
  headers: async (s) => [...(await s.headers(new Headers({ a: "1" })))],
  fetch: async (s) => (await s.fetch("http://object/path", { method: "DELETE" })).json(),
  fetchUpload: async (s) => {
    const r = await s.fetch("http://object/upload", {
      method: "POST",
      body: bytes(300_000),
      headers: { "x-type": "big" },
    });
    return [await r.text(), r.headers.get("x-type")];
  },
  fetchStream: async (s) => text((await s.fetch("http://object/slowly")).body),
  fetchRedirect: async (s) =>
    (await s.fetch("http://object/redirect", { redirect: "manual" })).headers.get("location"),
  fetchBoom: (s) => caught(async () => s.fetch("http://object/boom")),
  stubGiven: (s, env) => s.callOther(env.ROOMS.getByName("given"), "through"),
  stubFetched: (s, env) => s.fetchOther(env.ROOMS.getByName("given")),
  stubReturned: async (s) => (await s.other("returned")).title,
  stubPipelined: (s) => s.other("returned").echo("piped"),
  stubFetchedHere: async (s) => (await (await s.other("returned")).fetch("http://object/r")).json(),
  stubsNested: async (s) => {
    const { list } = await s.others();
    return Promise.all(list.map((each) => each.title));
  },
  stubSentOn: async (s) => s.callOther(await s.other("second"), "on"),
  stubKept: async (s, env) => {
    await s.keepOther(env.ROOMS.getByName("kept"));
    return s.useOther();
  },
  serviceGiven: (s, env) => s.useService(env.SELF),
  serviceReturned: async (s) => (await s.service()).hello("me"),
  stubOfTarget: async (s, env) => {
    using t = await s.tally();
    return env.ROOMS.getByName("third").useTarget(t);
  },
  boom: (s) => caught(() => s.boom()),
  boomText: async (s) => {
    try {
      await s.boomText();
    } catch (e) {
      return typeof e === "string" ? e : `${e.name}: ${e.message}`;
    }
  },
  boomLater: (s) => caught(() => s.boomLater()),
  boomCause: async (s) => {
    try {
      await s.boomCause();
    } catch (e) {
      return [e.message, e.cause?.message];
    }
  },
  boomBack: (s) =>
    s.catches(() => {
      throw Object.assign(new SyntaxError("from the caller"), { detail: 9 });
    }),
  absent: (s) => caught(() => s.absent()),
  own: (s) => caught(() => s.serial),
  privateMethod: (s) => caught(() => s.constructor("x")),
  reserved: (s) => caught(() => s.alarm()),
  getterThrows: (s) => caught(() => s.getterThrows()),
  getterGiven: (s) =>
    caught(() =>
      s.echo({
        get bad() {
          throw new Error("mine");
        },
      }),
    ),
  badGetter: (s) => caught(() => s.bad),
  badTarget: async (s) => {
    using t = await s.tally();
    return await caught(async () => t.bad);
  },
  badStream: (s) => caught(async () => text(await s.badStream())),
  badStored: (s) => s.badStored(),
  badErrorOwn: (s) => caught(async () => s.badErrorOwn()),
  deep: (s) => caught(async () => s.deepBad()),
  symbol: (s) => caught(() => s.symbol()),
  getterInMap: (s) => caught(() => s.getterInMap()),
  weak: (s) => caught(() => s.weak()),
  instance: (s) => caught(() => s.instance()),
  idGiven: (s, env) => caught(() => s.echo(env.ROOMS.idFromName("x"))),
  namespaceGiven: (s, env) => caught(() => s.echo(env.ROOMS)),
  kvGiven: (s, env) => caught(() => s.echo(env.KV)),
  identity: (s) => s.identity(),
  stubIdentity: async (s) => [s.name.replace(/^\w+ /, "room "), (await s.identity()).id === s.id.toString()],
  abort: async (s) => {
    const before = await s.serialOf();
    const thrown = await caught(() => s.abort());
    return [thrown, (await s.serialOf()) > before];
  },
  abortSilently: async (s) => {
    const before = await s.serialOf();
    const thrown = await caught(() => s.abortSilently());
    return [thrown.thrown !== undefined, (await s.serialOf()) > before];
  },
  waitUntil: async (s) => {
    const first = await s.later();
    for (let i = 0; i < 100; i++) {
      const value = await s.laterValue();
      if (value !== undefined) return [first, value];
      await scheduler.wait(10);
    }
  },
  block: (s) => s.block(),
  blockFails: async (s) => {
    const before = await s.serialOf();
    return [(await caught(() => s.blockFails())).thrown, (await s.serialOf()) > before];
  },
  sql: (s) => s.sql(),
  sqlRefused: (s) => s.sqlRefused(),
  transactionSync: (s) => s.transactionSync(),
  transaction: (s) => s.transaction(),
  kvSync: (s) => s.kvSync(),
  kvAsync: (s) => s.kvAsync(),
  deleteAll: (s) => s.deleteAll(),
  out: (s) => s.out(),
};

const run = async (row, place, env) => {
  try {
    return await rows[row](env.ROOMS.getByName(`${place} ${row}`), env);
  } catch (e) {
    return { thrown: `${e.name}: ${e.message}`, code: e.code, stack: e.stack };
  }
};

/** An object that calls others, so that they are in its cell. */
export class Caller extends DurableObject {
  async fetch(request) {
    return Response.json(await run(new URL(request.url).pathname.slice(1), "same", this.env));
  }
}

export default {
  async fetch(request, env) {
    const [, place, row] = new URL(request.url).pathname.split("/");
    if (place === "via") return new Response("via the service");
    if (place === "rows") return Response.json(Object.keys(rows));
    if (place === "object") return env.CALLERS.getByName("caller").fetch(`http://object/${row}`);
    return Response.json(await run(row, "other", env));
  },
};
