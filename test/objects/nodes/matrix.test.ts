import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { shardOf } from "../../../src/platform/object-shards/shard.ts";
import { ObjectNodes, type ObjectNode } from "../../helpers/object-nodes.ts";
import { startOutside, type Outside } from "../../runtime/platform.ts";
import { deployRows, expected, matrixBindings, resultsOf } from "../matrix/matrix.ts";

/** The features of objects for callers on another node: a script, and an object. */
let nodes: ObjectNodes;
let outside: Outside;
/** A script whose objects that call and objects that are called are on different nodes. */
let script = "";
/** The node that has the callers, and not the objects that they call. */
let caller: ObjectNode;

beforeAll(async () => {
  nodes = await ObjectNodes.begin({ leaseMs: 10_000, settings: ["--private-networks", "all"] });
  outside = await startOutside((_request, response) => response.end("from outside"));
  const a = await nodes.start("a");
  await nodes.start("b");
  await nodes.divided();
  const bindings = await matrixBindings(a.server.ready.api, a, outside);
  const owners = await nodes.owners();
  for (let n = 1; caller === undefined; n++) {
    script = `rows${n}`;
    await deployRows(a, script, bindings);
    const { result } = await a.api("GET", "/workers/durable_objects/namespaces?per_page=1000");
    const own = (result as { id: string; script: string; class: string }[]).filter(
      (each) => each.script === script,
    );
    const portOf = (name: string): number | undefined =>
      owners.get(shardOf(own.find((each) => each.class === name)!.id));
    if (portOf("Room") !== portOf("Caller"))
      caller = nodes.all.find(({ port }) => port === portOf("Caller"))!;
  }
  await vi.waitFor(async () => expect((await caller.ask(script, "/rows")).status).toBe(200));
});
afterAll(async () => {
  await nodes?.close();
  await outside?.close();
});

it.each([
  ["a script", "cell"],
  ["an object", "object"],
])(
  "an object works as expected for %s on another node",
  async (_caller, place) => {
    expect(await resultsOf(caller, script, place)).toEqual(expected);
  },
  120_000,
);
