import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { callerError, type ApiError } from "../../../control/api/errors.ts";
import { DatabaseUnavailable } from "../../../platform/storage/faults.ts";
import type { ObjectGate } from "../../runtime/object-gate.ts";
import { AtOwner } from "./at-owner.ts";
import type { NodeParts } from "./node-objects.ts";
import { OwnedObjects } from "./owned-objects.ts";
import { shippedWork } from "./shipped-work.ts";

interface Node {
  atOwner: AtOwner;
  /** The changes that calls of other nodes waited for. */
  awaited: number[];
  /** Gives all objects away. */
  giveAway: () => void;
  /** Takes all objects back. */
  takeBack: () => void;
  owns: () => boolean;
}

/** Two nodes, of which the second has all objects. A silent one takes connections, and answers nothing. */
async function startNodes(isSilent = false): Promise<[Node, Node]> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-nodes-"));
  const paths = ["first", "second"].map((name) => join(folder, name));
  const [first, second] = await Promise.all(
    paths.map(async (path, index): Promise<Node> => {
      const calls = new ProcessCalls(path, path);
      if (isSilent && index === 1) await listenSilently(path);
      else await calls.listen(() => {});
      onTestFinished(() => calls.close());
      let isOwner = index === 1;
      const owners = {
        owns: () => isOwner,
        addressOf: () => ({ id: 1, address: paths[1]! }),
        isLive: () => true,
        onChange: () => () => {},
      };
      const awaited: number[] = [];
      const parts = {
        calls,
        silentMs: 500,
        seq: () => 7,
        async reaches(seq: number) {
          await new Promise((resolve) => setImmediate(resolve));
          awaited.push(seq);
          return true;
        },
      };
      const owned = new OwnedObjects({} as ObjectGate, owners, parts as unknown as NodeParts);
      return {
        atOwner: new AtOwner(owned, calls),
        awaited,
        giveAway: () => (isOwner = false),
        takeBack: () => (isOwner = true),
        owns: () => isOwner,
      };
    }),
  );
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return [first!, second!];
}

async function listenSilently(path: string): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket.resume()));
  await once(server.listen(path), "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
}

it("the owner first takes over the changes of the node that asks", async () => {
  const [first, second] = await startNodes();
  const [ask] = [first, second].map(({ atOwner, awaited }) =>
    atOwner.work("work", async ({ given }: { namespace: string; given: string }) => ({ given, awaited })),
  );
  expect(await ask!({ namespace: "0", given: "é" })).toEqual({ given: "é", awaited: [7] });
  expect(first.awaited).toEqual([]);
});

it("a call of a node that answers nothing, and keeps its lease, ends as one whose connection is lost", async () => {
  const [first] = await startNodes(true);
  const { atOwner } = first;
  const ask = atOwner.work("work", async (given: { namespace: string }) => given);
  const lost = { message: "Network connection lost.", flags: ["retryable"] };
  await expect(ask({ namespace: "0" })).rejects.toMatchObject(lost);
  await expect(ask({ namespace: "0" })).rejects.toMatchObject(lost);
});

it.each(["the owner", "another node"])(
  "work of %s fails as one whose connection is lost if its objects are given away meanwhile",
  async (asking) => {
    const [first, second] = await startNodes();
    const work = async (given: { namespace: string }): Promise<object> => {
      second.giveAway();
      throw new Error(`no such file in ${given.namespace}`);
    };
    const [ask, askOwner] = [first, second].map(({ atOwner }) => atOwner.work("work", work));
    const asked = asking === "the owner" ? askOwner! : ask!;
    await expect(asked({ namespace: "0" })).rejects.toMatchObject({
      message: "Network connection lost.",
      flags: ["retryable"],
    });
  },
);

it.each([
  ["the owner", "given away"],
  ["another node", "given away"],
  ["the owner", "not shipped"],
  ["another node", "not shipped"],
])("work of %s is done once if its result is %s", async (asking, fate) => {
  const [first, second] = await startNodes();
  let runs = 0;
  const whenShipped = async (): Promise<void> => {
    if (runs > 1) return;
    second.giveAway();
    setTimeout(second.takeBack, 50); // before work that was refused is repeated
    if (fate === "not shipped") throw new Error("no store");
  };
  const parts = {
    lease: { current: 1, owns: second.owns },
    log: { whenShipped },
    logger: { warn: () => {} },
  };
  const work = async ({ namespace }: { namespace: string }): Promise<number> =>
    shippedWork(namespace, async () => ++runs, parts);
  const [ask, askOwner] = [first, second].map(({ atOwner }) => atOwner.work("work", work));
  const asked = asking === "the owner" ? askOwner! : ask!;
  await expect(asked({ namespace: "0" })).rejects.toMatchObject({
    message: "Network connection lost.",
    flags: ["retryable"],
  });
  expect(runs).toBe(1);
});

it("callers of other nodes get the public error if the owner cannot use the database", async () => {
  const [first, second] = await startNodes();
  const work = async (): Promise<object> => {
    throw new DatabaseUnavailable(new Error("ended"));
  };
  const [ask] = [first, second].map(({ atOwner }) => atOwner.work("work", work));
  await expect(ask!({ namespace: "0" })).rejects.toSatisfy(
    (error) => (callerError(error) as ApiError).status === 503,
  );
});
