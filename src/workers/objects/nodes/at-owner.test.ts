import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import type { ObjectGate } from "../../runtime/object-gate.ts";
import { AtOwner } from "./at-owner.ts";
import type { NodeParts } from "./node-objects.ts";
import { OwnedObjects } from "./owned-objects.ts";

interface Node {
  atOwner: AtOwner;
  /** The changes that calls of other nodes waited for. */
  awaited: number[];
}

/** Two nodes, of which the second has all objects. */
async function startNodes(): Promise<[Node, Node]> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-nodes-"));
  const paths = ["first", "second"].map((name) => join(folder, name));
  const [first, second] = await Promise.all(
    paths.map(async (path, index): Promise<Node> => {
      const calls = new ProcessCalls(path, path);
      await calls.listen(() => {});
      onTestFinished(() => calls.close());
      const owners = {
        owns: () => index === 1,
        addressOf: () => ({ id: 1, address: paths[1]! }),
        isLive: () => true,
        onChange: () => () => {},
      };
      const awaited: number[] = [];
      const parts = {
        calls,
        seq: () => 7,
        async reaches(seq: number) {
          await new Promise((resolve) => setImmediate(resolve));
          awaited.push(seq);
        },
      };
      const owned = new OwnedObjects({} as ObjectGate, owners, parts as unknown as NodeParts);
      return { atOwner: new AtOwner(owned, calls), awaited };
    }),
  );
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return [first!, second!];
}

it("the owner first takes over the changes of the node that asks", async () => {
  const [first, second] = await startNodes();
  const [ask] = [first, second].map(({ atOwner, awaited }) =>
    atOwner.work("work", async ({ given }: { namespace: string; given: string }) => ({ given, awaited })),
  );
  expect(await ask!({ namespace: "0", given: "é" })).toEqual({ given: "é", awaited: [7] });
  expect(first.awaited).toEqual([]);
});
