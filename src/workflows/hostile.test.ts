import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCall, readEnding, readNote } from "./said.ts";
import { EngineHarness } from "./testing.ts";

/** Scripts that say what the platform's own code in their isolate never says. */
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
  '["done","do:a-1",1,0,{"x":1},null]',
  '["done","do:a-1",1,0,5,null]',
  '["done","do:a-1",1,0,"j\\u0000",null]',
  '["done","do:a-1","1",0,"j1",null]',
  '["done","do:a-1",0,0,"j1",null]',
  '["done","do:a-1",1,1e400,"j1",null]',
  '["done","do:a-1",1,0,"j1","not json"]',
  '["done","do:a-1",1,0,"j1","null"]',
  '["done","do:\\u0000-1",1,0,"j1",null]',
  `["done","do:${"x".repeat(300)}",1,0,"j1",null]`,
  '["done","sleep:a-1",1,0,"j1",null]',
  '["failed","do:a-1",1,0,null,1e400,null]',
  '["failed","do:a-1",1,0,null,"soon",null]',
  '["sleep","sleep:s-1","x",null]',
  '["sleep","do:s-1",1,null]',
  '["wait","waitForEvent:w-1",{},1]',
  '["wait","waitForEvent:w-1","a\\u0000",1]',
  '["wait","waitForEvent:w-1","a",null]',
  '["retry","sleep:s-1"]',
];

it.each(bad)("is not understood: %s", (text) => {
  expect(readCall(text)).toBeUndefined();
  expect(readNote(text)).toBeUndefined();
  expect(readEnding(text)).toMatchObject({ end: "throw", error: { name: "WorkflowInternalError" } });
});

it("an error is made of what there is, and cut", () => {
  expect(readCall('["failed","do:a-1",1,0,null,null,null]')?.[4]).toEqual({
    name: "Error",
    message: "",
    stack: "",
  });
  const error = { name: 7, message: "x".repeat(1e6), stack: "y".repeat(1e6) };
  const read = readEnding(JSON.stringify({ end: "throw", error, unasked: [1, "do:a-1", "\0"] }));
  expect(read).toMatchObject({ error: { name: "Error" }, unasked: ["do:a-1"] });
  expect(JSON.stringify(read).length).toBeLessThan(100_000);
});

it("what is well-formed is understood", () => {
  const calls = [
    ["get", "do:a-1"],
    ["retry", "rollback:a-1"],
    ["sleep", "sleep:s-1", -5, null],
    ["wait", "waitForEvent:w-1", "go", 0],
    ["done", "do:a b-1", 1, -3, "j1", config],
    ["failed", "do:a-1", 2, 0, { name: "E", message: "m", stack: "s" }, 5, null],
  ];
  for (const call of calls) expect(readCall(JSON.stringify(call))).toEqual(call);
  const note = ["start", "do:a-1", 1, 50, config];
  expect(readNote(JSON.stringify(note))).toEqual(note);
});

describe("an engine with such a script", () => {
  let harness: EngineHarness;
  beforeAll(async () => {
    const code = `import { WorkflowEntrypoint } from "cloudflare:workers";
const { stringify } = JSON;
export class Main extends WorkflowEntrypoint {
  async run({ payload }, step) {
    if (payload.say === undefined) {
      return step.do("a", async () => new Promise((resolve) => setTimeout(() => resolve(1), 30)));
    }
    const isOwn = (value) => Array.isArray(value) && value[1] === "do:hostile-1";
    JSON.stringify = (value) => (isOwn(value) ? payload.say : stringify(value));
    await step.do("hostile", async () => 1);
  }
}
export default {};`;
    harness = await EngineHarness.start("", { code });
  });
  afterAll(() => harness.close());

  it.each(bad.filter((text) => text.length < 100))(
    "ends the instance that says %s, and no other",
    async (say) => {
      const [hostile, neighbour] = await Promise.all([
        harness.create(`hostile ${say}`, { say }),
        harness.create(`neighbour of ${say}`),
      ]);
      const { status, error } = await harness.ended(hostile.rid);
      expect(status).toBe("errored");
      expect((error as Error).message).toMatch(/is not understood|one line of JSON/);
      expect(await harness.ended(neighbour.rid)).toMatchObject({ status: "complete", output: 1 });
    },
  );
});
