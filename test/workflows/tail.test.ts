import { once } from "node:events";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { startWorkflowHosting, type WorkflowHosting } from "./hosting.ts";

/** Traces of a script's workflows: one for each invocation of `run`. */
let hosting: WorkflowHosting;
beforeAll(async () => {
  hosting = await startWorkflowHosting();
  await hosting.workflow(
    "watched",
    `console.log("begin", event.instanceId);
     await step.do("a", async () => console.warn("in a step"));
     if (event.payload.sleeps) await step.sleep("s", "1 second");
     if (event.payload.fails) throw new RangeError("too far");
     console.log("end");`,
  );
});
afterAll(() => hosting.close(1000));

interface Seen {
  scriptName: string;
  entrypoint: string;
  outcome: string;
  event: { rpcMethod: string };
  logs: { level: string; message: unknown[] }[];
  exceptions: { name: string; message: string }[];
}

async function watch(): Promise<{ seen: Seen[]; socket: WebSocket }> {
  const path = `/accounts/${hosting.account}/workers/scripts/watched/tails`;
  const { body } = await hosting.call("POST", path, {});
  const socket = new WebSocket(String(body.result.url), "trace-v1");
  const seen: Seen[] = [];
  socket.on("message", (data: Buffer) => seen.push(JSON.parse(data.toString()) as Seen));
  await once(socket, "open");
  return { seen, socket };
}

it("contains logs, the exception, and each continuation", async () => {
  const { seen, socket } = await watch();
  await hosting.create("watched", "one");
  await vi.waitFor(() => expect(seen).toHaveLength(1));
  expect(seen[0]).toMatchObject({
    scriptName: "watched",
    entrypoint: "Main",
    outcome: "ok",
    event: { rpcMethod: "run" },
    logs: [
      { level: "log", message: ["begin", "one"] },
      { level: "warn", message: ["in a step"] },
      { level: "log", message: ["end"] },
    ],
    exceptions: [],
  });

  await hosting.create("watched", "two", { sleeps: true, fails: true });
  await vi.waitFor(() => expect(seen).toHaveLength(3));
  expect(seen[1]).toMatchObject({ outcome: "ok", logs: [{ message: ["begin", "two"] }, { level: "warn" }] });
  expect(seen[2]).toMatchObject({
    outcome: "exception",
    logs: [{ message: ["begin", "two"] }],
    exceptions: [{ name: "RangeError", message: "too far" }],
  });

  // An invocation that starts no code has no trace.
  const again = await hosting.call("POST", hosting.instances("watched"), { id: "two" });
  expect(again.status).toBe(409);
  await hosting.create("watched", "three");
  await vi.waitFor(() => expect(seen).toHaveLength(4));
  expect(seen[3]!.logs[0]!.message).toEqual(["begin", "three"]);
  socket.terminate();
});
