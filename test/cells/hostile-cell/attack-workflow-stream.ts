import { join } from "node:path";
import { type WebSocket } from "ws";
import type { Cell } from "../../../src/sandbox/cell.ts";
import { WorkflowStream } from "../../../src/products/workflows/cells/workflow-stream.ts";
import { EngineHarness } from "../../../src/products/workflows/testing.ts";
import { frame } from "../../../src/sandbox/worker/frames.ts";
import { type Random, oneOf, texts } from "./random.ts";
import { type Row, beside } from "./beside.ts";
import { speaking } from "./attack-channel.ts";

/** A stream of its own into the engine, which names the invocations of innocent instances. */
export async function attackWorkflowStream(folder: string, count: number, next: Random): Promise<Row> {
  const harness = await EngineHarness.start(`return step.do("a", async () => event.payload.n);`);
  const path = join(folder, "stream.sock");
  let sent = 0;
  const isMore = (): boolean => sent < count;
  const wrong = (): string | Buffer => {
    sent++;
    const invocations = [...harness.engine.state.invocations.keys(), 1, 2, 3];
    const text = oneOf(next, [
      ...texts,
      '{"end":"return","unasked":[]}\nj"stolen"',
      '{"end":"throw","error":{"name":"Error","message":"stolen"},"unasked":[]}',
      '{"end":"held"}',
      '["done","do:a-1",1,0,null]\nj"stolen"',
      '["failed","do:a-1",1,0,{"name":"Error","message":"stolen"},null,null]',
      '["sleep","sleep:a-1",1e9,null]',
    ]);
    const whole = frame(
      oneOf(next, ["C", "N", "E", "E", "C", "R", "A", "S", "X"]),
      oneOf(next, invocations),
      next(5),
      text,
    );
    return next(20) === 0
      ? oneOf<string | Buffer>(next, [text, whole.slice(next(whole.length)), Buffer.from(text), `${whole} `])
      : whole;
  };
  let onSocket: (socket: WebSocket) => void = () => {};
  const cell = await speaking(path, (socket) => onSocket(socket));
  const fake = { workflowStreamAddress: { path, headers: {} }, touch: () => {} } as unknown as Cell;
  const own = new Set([1, 2, 3]);
  let foreign = 0;
  const { calls } = harness.engine;
  const counted = <T>(invocation: number, work: () => T): T => {
    if (!own.has(invocation)) foreign++;
    return work();
  };
  const listener = {
    call: (invocation: number, call: number, text: string) =>
      counted(invocation, () => calls.call(invocation, call, text)),
    note: (invocation: number, text: string) => counted(invocation, () => calls.note(invocation, text)),
    ended: (invocation: number, ending: never) => counted(invocation, () => calls.ended(invocation, ending)),
    lost: () => {},
  };
  let n = 0;
  const innocent = async (): Promise<boolean> => {
    const { rid } = await harness.create(`innocent ${++n}`, { n });
    const { status, output } = await harness.ended(rid);
    return status === "complete" && output === n;
  };
  await innocent(); // boots its cell
  const row = await beside(
    "stream of workflows",
    count,
    async () => {
      while (isMore()) {
        const served = new Promise<void>((resolve) => {
          onSocket = (socket) => {
            socket.on("close", () => resolve());
            socket.once("message", () => {
              const burst = (): void => {
                for (let i = 0; i < 50 && isMore(); i++) socket.send(wrong());
                if (!isMore() || next(10) === 0) socket.close();
                else if (socket.readyState === socket.OPEN) setImmediate(burst);
              };
              burst();
            });
          };
        });
        const stream = await WorkflowStream.open(fake, () => listener, {
          ended: (invocation) => counted(invocation, () => {}),
          lost: () => {},
          fault: (error) => {
            throw error as Error;
          },
        });
        for (const invocation of own) stream.run(invocation, "s", "token", "Main", "{}");
        await served;
        stream.close();
      }
    },
    innocent,
  );
  row.changed += foreign;
  cell.close();
  await harness.close();
  return row;
}
