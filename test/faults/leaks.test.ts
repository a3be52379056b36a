import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { operations } from "../../src/capabilities.ts";
import { fourColors, pngOf } from "../images/fixtures.ts";
import { leaks, leaksIn } from "../helpers/leaks.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { bindingsToWrites, type Call, callerOf, everyWrite, type Write } from "../helpers/writes.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/**
 * Faults of the database and of files, and nonsensical requests. No response reveals more than the part that
 * failed. test/setup.ts checks every response of every test, including these.
 */
const dataDir = temporaryFolder();
let server: Hosting;
let call: Call;
let writes: Write[];
let image: string;
let zone: string;
let n = 0;
/** Counts of responses by status. */
const counts = new Map<number, number>();

const script = `
export default {
  async fetch(request, env) {
    const asked = {
      get: () => env.KV.get("large"), list: () => env.KV.list(), put: () => env.KV.put("key", "value"),
      send: () => env.JOBS.send("message"), create: () => env.FLOW.create(),
      info: () => env.IMAGES.info(new Response("no image").body),
    };
    const results = [];
    for (const ask of Object.values(asked)) {
      try { await ask(); } catch (error) { results.push(String(error?.message)); }
    }
    return Response.json(results);
  },
};`;

beforeAll(async () => {
  server = await startHosting({ ephemeral: false, dataDir, logLevel: "silent" });
  const counted = callerOf(server.ready.api);
  call = async (...args) => {
    const answer = await counted(...args);
    counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
    return answer;
  };
  const png = await pngOf(fourColors(64, 48));
  ({ writes } = await everyWrite(call, server.account, { png, largeBytes: 200 * 1024 }));
  for (const { kind, send } of writes) {
    const { status, text } = await send(++n);
    expect(`${kind}: ${status} ${text}`).toMatch(/: 20[0-2] /);
  }
  const account = `/accounts/${server.account}`;
  image = (await call("GET", `${account}/images/v1`)).result.images[0].id as string;
  zone = (await call("GET", "/zones")).result[0].id as string;
  const namespace = await server.createKv("bound", { large: "x".repeat(200 * 1024) });
  await call("POST", `${account}/queues`, { queue_name: "jobs" });
  await server.deploy("asking", {
    code: script,
    bindings: [...bindingsToWrites(namespace), { type: "images", name: "IMAGES" }],
  });
});
afterAll(async () => {
  await server.close(1000);
  rmSync(dataDir, { recursive: true });
});

/** Every read and write, an image, and a script's requests. */
async function askForEverything(): Promise<void> {
  const known: Record<string, string> = {
    account_id: server.account,
    zone_id: zone,
    image_id: image,
    script_name: "w-script",
    workflow_name: "w-workflow",
    namespace_name: "w-customers",
    phase: "http_request_origin",
  };
  const reads = operations
    .filter(({ method, access }) => method === "GET" && access.scope !== "own")
    .map(({ path }) => path.replace(/\{(\w+)\}/g, (_, name: string) => known[name] ?? "f".repeat(32)));
  // A response that streams a file may be truncated.
  await Promise.allSettled(reads.map((path) => call("GET", path)));
  await Promise.all(writes.map(({ send }) => send(++n)));
  for (const options of ["w=10", "public", `w=${(n += 1)}`]) {
    const url = `${server.ready.delivery}/${server.ready.account_hash}/${image}/${options}`;
    const picture = await fetch(url);
    counts.set(picture.status, (counts.get(picture.status) ?? 0) + 1);
    await picture.bytes();
  }
  const { status, body } = await server.ask("asking");
  if (status === 200)
    for (const result of JSON.parse(body) as string[]) expect(leaksIn(result, true)).toEqual([]);
}

it("the check detects a leak", async () => {
  const leaking = createServer((_, response) => {
    const message = `ENOENT: no such file or directory, open '${process.cwd()}/x'`;
    response.writeHead(500, { "x-request-id": "1", "content-type": "application/json" });
    response.write(JSON.stringify({ errors: [{ message }] }));
    response.end();
  });
  await new Promise<void>((resolve) => leaking.listen(0, "127.0.0.1", resolve));
  await fetch(`http://127.0.0.1:${(leaking.address() as AddressInfo).port}/`);
  leaking.close();
  expect(leaks.splice(0)).toEqual([
    expect.stringContaining(`500 says ${process.cwd()}`),
    expect.stringContaining("500 says ENOENT"),
  ]);
});

it("answers without a table leak nothing", async () => {
  const database = new DatabaseSync(join(dataDir, "selvedge.db"), { timeout: 5000 });
  database.exec("pragma legacy_alter_table = on; pragma foreign_keys = off");
  const tables = database
    .prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'")
    .all() as { name: string }[];
  counts.clear();
  // Six at a time, far apart in the list.
  const groups = Map.groupBy(tables, (_, i) => i % Math.ceil(tables.length / 6));
  for (const group of groups.values()) {
    for (const { name } of group) database.exec(`alter table "${name}" rename to "${name}_away"`);
    await askForEverything();
    for (const { name } of group) database.exec(`alter table "${name}_away" rename to "${name}"`);
  }
  database.close();
  expect(counts.get(500)).toBeGreaterThan(100);
});

describe("files", () => {
  const folders = (folder: string): string[] =>
    readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [join(folder, entry.name), ...folders(join(folder, entry.name))] : [],
    );

  it.each(["removed", "a file in the place of a folder", "a folder in the place of a file"])(
    "%s",
    async (kind) => {
      counts.clear();
      for (const top of ["blobs", "cache"]) {
        const place = join(dataDir, top);
        mkdirSync(place, { recursive: true });
        renameSync(place, `${place}-away`);
        if (kind === "a file in the place of a folder") writeFileSync(place, "");
        if (kind === "a folder in the place of a file")
          for (const folder of folders(`${place}-away`))
            for (const file of readdirSync(folder))
              if (statSync(join(folder, file)).isFile())
                mkdirSync(join(folder, file).replace(`${place}-away`, place), { recursive: true });
        await askForEverything();
        rmSync(place, { recursive: true, force: true });
        renameSync(`${place}-away`, place);
      }
      expect(counts.get(500) ?? 0).toBeGreaterThan(0);
    },
  );
});

describe("nonsensical requests", () => {
  const wrap = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
  const bodies: [type: string, body: string][] = [
    ["application/json", "{"],
    ["application/json", "nonsense"],
    ["application/json", '{"a": tru}'],
    ["application/json", wrap(100_000)],
    ["application/json", '{"__proto__": {"name": 1}, "constructor": null, "name": {"toString": 1}}'],
    ["application/json", JSON.stringify({ name: "\ud800", id: "\0", type: [], content: { a: 1 } })],
    ["application/json", "\ufeff{}"],
    ["application/json", Buffer.from([0x22, 0xff, 0xfe, 0x22]).toString("latin1")],
    ["multipart/form-data; boundary=x", '--x\r\ncontent-disposition: form-data; name="metadata"\r\n\r\n{'],
    ["multipart/form-data; boundary=x", "--x\r\nnothing\r\n\r\n{\r\n--x--\r\n"],
    [
      "multipart/form-data; boundary=x",
      '--x\r\ncontent-disposition: form-data; name="metadata"\r\n\r\n{"main_module": \r\n--x--\r\n',
    ],
    [
      "multipart/form-data; boundary=x",
      '--x\r\ncontent-disposition: form-data; name="metadata"\r\n\r\n{"main_module":"a.wasm"}\r\n--x\r\ncontent-disposition: form-data; name="a.wasm"; filename="a.wasm"\r\ncontent-type: application/wasm\r\n\r\n\0asm\r\n--x--\r\n',
    ],
    ["multipart/form-data", "nothing"],
    ["text/plain", ""],
  ];

  it.each(["known ids", "strange ids"])("to every operation, with %s", async (kind) => {
    const strange = [
      "%00",
      "%ff",
      "..%2f..%2fetc%2fpasswd",
      "%ed%a0%80",
      "a".repeat(5000),
      "constructor",
      "%25",
    ];
    counts.clear();
    for (const { method, path } of operations) {
      const known: Record<string, string> =
        kind === "known ids"
          ? {
              account_id: server.account,
              zone_id: zone,
              script_name: "w-script",
              workflow_name: "w-workflow",
            }
          : { account_id: server.account, zone_id: zone };
      const at = path.replace(
        /\{(\w+)\}/g,
        (_, name: string) =>
          known[name] ?? (kind === "known ids" ? "f".repeat(32) : strange[++n % strange.length]!),
      );
      // Skip deletions of resources that later requests need.
      if (method === "DELETE" && kind === "known ids") continue;
      if (method === "GET") {
        for (const query of [
          "page=x&per_page=-1&cursor=%00&order=constructor",
          "limit=1e999&id[]=1&filter=%ff",
        ])
          await call("GET", `${at}?${query}`);
      } else {
        await Promise.all(bodies.map(([type, body]) => call(method, at, body, { "content-type": type })));
      }
    }
    expect(counts.get(500) ?? 0).toBe(0);
  });
});
