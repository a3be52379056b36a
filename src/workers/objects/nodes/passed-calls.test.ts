import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, expect, it } from "vitest";
import { ViaHeader } from "../../../edge/http/via.ts";
import type { Outbound } from "../../../edge/origin/outbound.ts";
import { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import type { RpcTunnels } from "../../../sandbox/gateway/rpc-tunnels.ts";
import type { ObjectCall, ObjectGate } from "../../runtime/object-gate.ts";
import { withoutVisitor, type RunRoot } from "../../runtime/run-root.ts";
import { OutgoingCalls, callNames, serveObjects } from "./passed-calls.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const ends: (() => void)[] = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

const viaHeader = new ViaHeader("key");
const noOutbound = {} as Outbound;
const noTunnels = {} as RpcTunnels;

async function listening(path: string): Promise<ProcessCalls> {
  const calls = new ProcessCalls(path, path);
  await calls.listen(() => {});
  ends.push(() => calls.close());
  return calls;
}

/** An edge process, the main process of its node, and the way of that to other nodes; and another node. */
async function newProcesses(): Promise<Record<"edge" | "main" | "here" | "there", ProcessCalls>> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-passed-"));
  const nodes = mkdtempSync(join(tmpdir(), "selvedge-nodes-"));
  ends.push(() => [folder, nodes].forEach((each) => rmSync(each, { recursive: true })));
  return {
    edge: await listening(join(folder, "edge.sock")),
    main: await listening(join(folder, "main.sock")),
    here: await listening(join(nodes, "here.sock")),
    there: await listening(join(nodes, "there.sock")),
  };
}

const callOf = (root: RunRoot): ObjectCall =>
  ({ root, caller: { accountId: "a" }, span: undefined }) as unknown as ObjectCall;

/** Objects whose method calls are routed by `take`. */
const routing = (take: (call: ObjectCall) => Promise<void>): ObjectGate =>
  ({
    async route(call: ObjectCall) {
      await take(call);
      return { slot: 1, token: "t" };
    },
  }) as unknown as ObjectGate;

/** The answer of a root's way on, as a visitor sees it. */
async function askNext(root: RunRoot): Promise<string> {
  const server = createServer((request, response) => {
    const url = new URL(request.url!, "http://origin.example");
    root.next!(url, request, response, { hops: 1, tree: root.tree! }).catch(() => response.destroy());
  });
  ends.push(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return (await fetch(`http://127.0.0.1:${port}/page`)).text();
}

it("an object of another node reaches the origin of a visitor at an edge process, long after its call was passed on", async () => {
  const { edge, main, here, there } = await newProcesses();
  let root: RunRoot | undefined;
  const inThere = routing(async (call) => void (root = call.root));
  serveObjects(there, inThere, viaHeader, noTunnels);
  const outOfHere = new OutgoingCalls(here, viaHeader, noOutbound, main);
  const passedOn = routing(async (call) => {
    await here.ask(callNames.route, { call: outOfHere.serialize(call), method: "m" }, there.path);
  });
  serveObjects(main, passedOn, viaHeader, noTunnels);
  const visited: RunRoot = {
    ...withoutVisitor(),
    edgeRequest: {
      host: "a.example",
      clientAddress: "192.0.2.1",
      zone: undefined,
      cf: () => "{}",
      span: undefined,
    },
    next: async (url, _request, response) => void response.end(`origin of the visitor: ${url.pathname}`),
  };
  const out = new OutgoingCalls(edge, viaHeader, noOutbound);
  await edge.ask(callNames.route, { call: out.serialize(callOf(visited)), method: "m" }, main.path);
  for (let time = 0; time < 3; time++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await askNext(root!)).toBe("origin of the visitor: /page");
  expect(visited.next).toBeDefined(); // held until here, as by the run of the calling script
});

it("asks no process for another node but the edge processes of its own", async () => {
  const { main, here, there } = await newProcesses();
  const out = new OutgoingCalls(here, viaHeader, noOutbound, main);
  expect(out).toBeDefined();
  const call = { root: "x", behind: join(tmpdir(), "other.sock"), hops: 0, accountId: "a" };
  await expect(there.ask(callNames.next, call, here.path)).rejects.toThrow();
});
