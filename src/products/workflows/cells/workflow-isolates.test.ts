import { fc } from "../../../../test/helpers/properties.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { WebSocket } from "ws";
import { BareCell, bareScript } from "../../../sandbox/testing-bare.ts";
import { readEnding } from "./parsed-messages.ts";
import {
  frame,
  messageBytesMax,
  openCallsMax,
  readFrames,
  textLengthMax,
} from "../../../sandbox/worker/frames.ts";

/** A script that controls its whole isolate: sends the messages that its start message lists. */
const hostile = `import { WorkerEntrypoint, RpcTarget } from "cloudflare:workers";
const valueOf = ({ text, times, odd }) => {
  if (odd === undefined) return text.repeat(times ?? 1);
  return { number: 5, null: null, object: { toString: "x" }, array: ["E 1 0 1\\nx"], bytes: new Uint8Array(9), target: new RpcTarget(),
    function: () => "E 1 0 1\\nx", throws: () => { throw new Error("no") }, undefined: undefined }[odd];
};
let kept;
export class WorkflowInvocations extends WorkerEntrypoint {
  async run(token, className, ask, start) {
    const { acts, ending } = JSON.parse(start);
    kept?.("call", "from an earlier invocation").catch(() => {});
    kept = ask.dup();
    for (const { what, times, value } of acts)
      for (let i = 0; i < (times ?? 1); i++) Promise.resolve(ask(what, valueOf(value))).catch(() => {});
    // Earlier messages have arrived once this one is answered.
    await ask("note", "flushed").catch(() => {});
    if (ending.throws !== undefined) throw Object.assign(new Error(ending.throws), { name: ending.throws });
    return valueOf(ending);
  }
}`;
const innocent = `import { WorkerEntrypoint } from "cloudflare:workers";
export class WorkflowInvocations extends WorkerEntrypoint {
  async run(token, className, ask, start) { return start + (await ask("call", token)) + className; }
}`;

interface Frame {
  kind: string;
  invocation: number;
  call: number;
  text: string;
}

let cell: BareCell;
let socket: WebSocket;
/** Frames by invocation, including those of invocations that the test did not start. */
const received = new Map<number, Frame[]>();
const onFrame = new Map<number, (frame: Frame) => void>();
let isMalformed = false;
beforeAll(async () => {
  cell = await BareCell.boot({ hostile: bareScript(hostile), innocent: bareScript(innocent) });
  socket = await cell.workflowStream();
  socket.on("message", (data: Buffer) => {
    isMalformed ||= data.length > messageBytesMax;
    isMalformed ||= !readFrames(data.toString(), (kind, invocation, call, text) => {
      const each: Frame = { kind, invocation, call, text };
      received.set(invocation, [...(received.get(invocation) ?? []).slice(-100), each]);
      onFrame.get(invocation)?.(each);
    });
  });
});
afterAll(() => cell.close());

let last = 1_800_000_000_000_000;
/** Starts an invocation and resolves with its frames once it has ended. Calls that carry a text are answered with it. */
async function run(script: string, start: string): Promise<Frame[]> {
  const invocation = ++last;
  const ended = new Promise<void>((resolve) =>
    onFrame.set(invocation, ({ kind, call, text: content }) => {
      if (kind === "E") resolve();
      if (kind === "C" && content !== "") socket.send(frame("A", invocation, call, content));
    }),
  );
  socket.send(
    frame("R", invocation, 0, `${JSON.stringify([script, `token ${invocation}`, "Main"])}\n${start}`),
  );
  await ended;
  return received.get(invocation)!;
}

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("\n", "\t", "\ud800", "x\udfff", "E 1 0 1\nx", 'C\t1\t1\t["get"]\nE\t1\t{"end":"held"}'),
  fc.nat(3).map((back) => frame("E", last - back, 0, '{"end":"held"}')),
);
const value = fc.oneof(
  fc.record({ text, times: fc.constantFrom(1, 3) }),
  fc.record({ text: fc.constant("\n é"), times: fc.constantFrom(textLengthMax / 3, textLengthMax) }),
  fc.record({
    text: fc.constant(""),
    odd: fc.constantFrom(
      "number",
      "null",
      "object",
      "array",
      "bytes",
      "target",
      "function",
      "throws",
      "undefined",
    ),
  }),
);
const act = fc.record({
  what: fc.oneof(fc.constantFrom("call", "note", "listen", "begun", "end"), text),
  times: fc.constantFrom(1, 2),
  value,
});

it("an isolate can send messages for its own invocation only", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(act, { maxLength: 6 }),
      fc.oneof(
        value,
        text.map((throws) => ({ throws })),
      ),
      async (acts, ending) => {
        received.clear();
        const wicked = run("hostile", JSON.stringify({ acts, ending }));
        const invocation = last;
        const good = await run("innocent", "start");
        expect(good).toEqual([
          { kind: "C", invocation: invocation + 1, call: 1, text: `token ${invocation + 1}` },
          { kind: "E", invocation: invocation + 1, call: 0, text: `starttoken ${invocation + 1}Main` },
        ]);
        const ended = await wicked;
        expect(ended.filter(({ kind }) => kind === "E")).toHaveLength(1);
        expect(ended.at(-1)!.kind).toBe("E");
        expect(new Set(received.keys())).toEqual(new Set([invocation, invocation + 1]));
        expect(isMalformed).toBe(false);
      },
    ),
    { numRuns: 60 },
  );
});

it.each([
  [
    "a message that is too long",
    { what: "call", value: { text: "x", times: textLengthMax + 1 } },
    /more than 2 MiB/,
  ],
  ["a note that is not a string", { what: "note", value: { text: "", odd: "object" } }, /not a string/],
  ["a listener that is not a function", { what: "listen", value: { text: "" } }, /not a function/],
  [
    "more calls than are answered",
    { what: "call", times: openCallsMax + 1, value: { text: "" } },
    /more than 50000 steps/,
  ],
])("an invocation ends with a clear error after %s", async (_, wrong, message) => {
  const ended = await run("hostile", JSON.stringify({ acts: [wrong], ending: { text: '{"end":"held"}' } }));
  expect(readEnding(ended.at(-1)!.text)).toMatchObject({
    end: "throw",
    error: { name: "WorkflowInternalError", message: expect.stringMatching(message) as string },
  });
});

it("an invocation ends with a clear error after an ending of 30 MB", async () => {
  const ended = await run("hostile", JSON.stringify({ acts: [], ending: { text: "x", times: 30e6 } }));
  expect(ended.at(-1)!.text.length).toBeLessThan(500);
  expect(readEnding(ended.at(-1)!.text)).toMatchObject({
    error: { message: expect.stringMatching(/2 MiB/) as string },
  });
});
