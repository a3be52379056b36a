import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { readCall, readEnding, readNote } from "./cells/parsed-messages.ts";
import { EngineHarness } from "./testing.ts";
import {
  callText,
  endingText,
  noteText,
  type CallMessage,
  type Ending,
  type NoteMessage,
} from "./worker/messages.ts";

/** Messages that the platform's own code in an isolate never sends. */
const config = '{"timeout":"1 minute"}';
const bad: string[] = [
  "",
  "garbage",
  "null",
  "{}",
  "[]",
  '["get"]',
  '["get",5]',
  '["unknown","do:a-1"]',
  '["done","do:a-1",1,0,null,0]',
  '["done","do:a-1",1,0,null]\nj1',
  '["done","do:a-1",1,0,null,"0"]\nj1',
  '["failed","do:a-1",1,0,null,null,null]',
  '["done","do:a-1",1,0,{"x":1},0]\nj1',
  '["done","do:a-1",1,0,null,0]\n',
  '["done","do:a-1",1,0,null,0]\nj',
  '["done","do:a-1",1,0,null,0]\n5',
  '["done","do:a-1",1,0,null,0]\nj\0',
  '["done","do:a-1","1",0,null,0]\nj1',
  '["done","do:a-1",0,0,null,0]\nj1',
  '["done","do:a-1",1e6,0,null,0]\nj1',
  '["done","do:a-1",1,1e400,null,0]\nj1',
  '["done","do:a-1",1,0,"not json",0]\nj1',
  '["done","do:a-1",1,0,"null",0]\nj1',
  '["done","do:\\u0000-1",1,0,null,0]\nj1',
  `["done","do:${"x".repeat(300)}",1,0,null,0]\nj1`,
  '["done","sleep:a-1",1,0,null,0]\nj1',
  '["failed","do:a-1",1,0,null,1e400,null,0]',
  '["failed","do:a-1",1,0,null,"soon",null,0]',
  '["sleep","sleep:s-1","x",null]',
  '["sleep","do:s-1",1,null]',
  '["wait","waitForEvent:w-1",{},1]',
  '["wait","waitForEvent:w-1","a\\u0000",1]',
  '["wait","waitForEvent:w-1","a",null]',
  '["retry","sleep:s-1"]',
  '{"end":"return","unasked":[]}',
  "[".repeat(500_000),
];

it.each(bad.map((text) => [JSON.stringify(text.slice(0, 60)), text]))(
  "is refused as malformed: %s",
  (_, text) => {
    expect(readCall(text)).toBeUndefined();
    expect(readNote(text)).toBeUndefined();
    expect(readEnding(text)).toMatchObject({ end: "throw", error: { name: "WorkflowInternalError" } });
  },
);

it("an error keeps its valid parts, truncated", () => {
  expect(readCall('["failed","do:a-1",1,0,null,null,null,0]')?.[4]).toEqual({
    name: "Error",
    message: "",
    stack: "",
  });
  const error = { name: 7, message: "x".repeat(100e3), stack: "y".repeat(50e3) };
  const read = readEnding(JSON.stringify({ end: "throw", error, unasked: [1, "do:a-1", "\0"] }));
  expect(read).toMatchObject({ error: { name: "Error" }, unasked: ["do:a-1"] });
  expect(JSON.stringify(read).length).toBeLessThan(20_000);
});

const calls: CallMessage[] = [
  ["get", "do:a-1"],
  ["retry", "rollback:a-1"],
  ["sleep", "sleep:s-1", -5, null],
  ["wait", "waitForEvent:w-1", "go", 0],
  ["done", "do:a b-1", 1, -3, 'j"1\n\t2"', config, 7],
  ["failed", "do:a-1", 2, 0, { name: "E", message: "m\n", stack: "s" }, 5, null, 7],
];

it("a message survives encoding and parsing", () => {
  for (const call of calls) expect(readCall(callText(call))).toEqual(call);
  const note: NoteMessage = ["start", "do:a-1", 1, 50, config];
  expect(readNote(noteText(note))).toEqual(note);
  const ending: Ending = { end: "return", value: "j[1,\n2]", unasked: ["do:b-1"] };
  expect(readEnding(endingText(ending))).toEqual(ending);
});

describe("an engine that receives such a message", () => {
  let harness: EngineHarness;
  beforeAll(async () => {
    harness = await EngineHarness.start(`return step.do("a", async () => event.payload.result);`);
  });
  afterAll(() => harness.close());

  it.each(bad.map((text) => [JSON.stringify(text.slice(0, 60)), text]))(
    "ends the instance that sends %s, and no other",
    async (_, text) => {
      const hostile = await harness.create(randomUUID());
      const neighbour = await harness.create(randomUUID(), { result: 1 });
      const invocation = await vi.waitFor(() => {
        const [number] = [...harness.engine.state.invocations].find(([, { rid }]) => rid === hostile.rid)!;
        return number;
      });
      await harness.engine.calls.call(invocation, 1, text);
      expect(await harness.ended(hostile.rid)).toMatchObject({
        status: "errored",
        error: { name: "WorkflowInternalError", message: expect.stringMatching(/malformed/) as string },
      });
      expect(await harness.ended(neighbour.rid)).toMatchObject({ status: "complete", output: 1 });
    },
  );
});

it("code that replaces the natives that build messages changes no message", async () => {
  const harness = await EngineHarness.start("", {
    code: `import { WorkflowEntrypoint } from "cloudflare:workers";
JSON.stringify = () => "garbage";
export class Main extends WorkflowEntrypoint { run(_, step) { return step.do("a", async () => 1); } }
export default {};`,
  });
  const { rid } = await harness.create("one");
  expect(await harness.ended(rid)).toEqual({ status: "complete", output: 1, error: undefined });
  await harness.close();
});
