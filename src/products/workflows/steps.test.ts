import { afterEach, describe, expect, it } from "vitest";
import { EngineHarness } from "./testing.ts";
import { History } from "./store/journal.ts";

/** Steps that run in real cells. The numbers are those of the acceptance cases. */
let harness: EngineHarness;
afterEach(() => harness.close());

async function run(
  body: string,
  options: Parameters<typeof EngineHarness.start>[1] = {},
  params: unknown = {},
) {
  harness = await EngineHarness.start(body, options);
  const { rid } = await harness.create("one", params);
  return { rid, ...(await harness.ended(rid)) };
}

describe("retries (18)", () => {
  it("makes six attempts by default, with delays that double", async () => {
    const { rid, status, error } = await run(
      `let n = 0; await step.do("x", { retries: { limit: 5, delay: 20 } }, async ({ attempt }) => { await visit("a" + attempt); throw new Error("no " + attempt); });`,
    );
    expect({ status, error }).toMatchObject({ status: "errored", error: { name: "Error", message: "no 6" } });
    expect(harness.requests).toEqual(["/a1", "/a2", "/a3", "/a4", "/a5", "/a6"]);
    const failed = (await harness.journal(rid)).filter(({ kind }) => kind === "failed");
    expect(failed.map(({ due, at }) => due && due - at)).toEqual([20, 40, 80, 160, 320, null]);
  });

  it.each([
    ["constant", [10, 10, 10]],
    ["linear", [10, 20, 30]],
    ["exponential", [10, 20, 40]],
  ])("waits %s delays", async (backoff, delays) => {
    const { rid, output } = await run(
      `return await step.do("x", { retries: { limit: 3, delay: 10, backoff: "${backoff}" } }, async ({ attempt }) => { if (attempt < 4) throw new Error(); return attempt; });`,
    );
    expect(output).toBe(4);
    const failed = (await harness.journal(rid)).filter(({ kind }) => kind === "failed");
    expect(failed.map(({ due, at }) => due! - at)).toEqual(delays);
  });

  it("makes one attempt when the limit is 0, and many when there is none", async () => {
    const { output } = await run(
      `let n = 0, caught;
       try { await step.do("once", { retries: { limit: 0, delay: 1 } }, async () => { await visit("once"); throw new Error("x"); }); } catch (error) { caught = error.message; }
       const at = await step.do("many", { retries: { limit: Infinity, delay: 0 } }, async ({ attempt }) => { if (attempt < 20) throw new Error(); return attempt; });
       return [caught, at];`,
    );
    expect(output).toEqual(["x", 20]);
    expect(harness.requests).toEqual(["/once"]);
  });

  it("fails at once when its delay function fails", async () => {
    const { error } = await run(
      `await step.do("x", { retries: { limit: 3, delay: () => { throw new Error("bad"); } } }, async () => { await visit("x"); throw new Error("no"); });`,
    );
    expect(error).toMatchObject({ name: "NonRetryableDelayError" });
    expect(harness.requests).toHaveLength(1);
  });

  it("aborts an attempt after its timeout, and fires its signal", async () => {
    const { error } = await run(
      `await step.do("slow", { timeout: 50, retries: { limit: 1, delay: 1 } }, async ({ signal }) => {
         signal.addEventListener("abort", () => {});
         await new Promise((resolve) => setTimeout(resolve, 5000)); });`,
    );
    expect(error).toMatchObject({ name: "WorkflowTimeoutError", message: "Execution timed out after 50ms" });
  });
});

describe("NonRetryableError (19)", () => {
  it.each(["2026-05-13", "2026-05-14"])("keeps its name and its message (%s)", async (compatibilityDate) => {
    const { error } = await run(`throw new NonRetryableError("stop", "Mine");`, { compatibilityDate });
    expect(error).toMatchObject({ name: "Mine", message: "stop" });
    await harness.close();
    const inStep = await run(`await step.do("x", async () => { throw new NonRetryableError("stop"); });`, {
      compatibilityDate,
    });
    expect(inStep.error).toMatchObject({ name: "NonRetryableError", message: "stop" });
    expect(inStep.status).toBe("errored");
  });

  it("is not retried, and ends the instance when nothing catches it", async () => {
    const { status, error } = await run(
      `await step.do("x", async () => { await visit("x"); throw new NonRetryableError("stop"); });`,
    );
    expect({ status, error }).toMatchObject({
      status: "errored",
      error: { name: "NonRetryableError", message: "stop" },
    });
    expect(harness.requests).toHaveLength(1);
  });

  it("is recognized under another name, as a subclass, and from nested code; a handler that catches it continues", async () => {
    const { output } = await run(
      `class Mine extends NonRetryableError {}
       const caught = [];
       for (const make of [() => new NonRetryableError("a", "MyName"), () => new Mine("b")]) {
         try { await step.do("x", async () => { await visit("x"); await Promise.resolve().then(() => { throw make(); }); }); }
         catch (error) { caught.push(error.message); }
       }
       caught.push(await step.do("clean up", async () => "cleaned"));
       return caught;`,
    );
    expect(output).toEqual(["a", "b", "cleaned"]);
    expect(harness.requests).toHaveLength(2);
  });
});

describe("rollback", () => {
  const undo = (more = "") =>
    `{ rollback: async ({ ctx, error, output, stepName }) => { await visit("undo-" + stepName + "-" + ctx.attempt + "-" + output + "-" + error.message); ${more} } }`;

  it("undoes started steps in reverse order when the workflow fails", async () => {
    const { rid, status, error } = await run(
      `await step.do("a", async () => 1, ${undo()});
       await step.do("plain", async () => 2);
       await step.do("b", { retries: { limit: 0, delay: 1 } }, async () => { throw new Error("no"); }, ${undo()});`,
    );
    expect({ status, error }).toMatchObject({
      status: "errored",
      error: { message: "no", rollback: { outcome: "complete", error: null } },
    });
    expect(harness.requests).toEqual(["/undo-b-1-1-undefined-no", "/undo-a-1-1-1-no"]);
    const history = new History(await harness.journal(rid));
    expect([...history.entries.keys()]).toEqual([
      "do:a-1",
      "do:plain-1",
      "do:b-1",
      "rollback:b-1",
      "rollback:a-1",
    ]);
    expect(history.stepCount).toBe(3);
  });

  it("retries as configured, and stops at a handler that fails", async () => {
    const handler = `{ rollback: async ({ ctx }) => { await visit("undo" + ctx.attempt); throw new Error("stuck"); }, rollbackConfig: { retries: { limit: 1, delay: 1, backoff: "constant" } } }`;
    const { error } = await run(
      `await step.do("first", async () => 1, ${undo()});
       await step.do("second", async () => 1, ${handler});
       throw new TypeError("over");`,
    );
    expect(error).toMatchObject({
      name: "TypeError",
      message: "over",
      rollback: { outcome: "failed", error: { name: "Error", message: "stuck" } },
    });
    expect(harness.requests).toEqual(["/undo1", "/undo2"]);
  });

  it("continues after the death of its cell, and undoes no step twice", async () => {
    harness = await EngineHarness.start(
      `await step.do("a", async () => 1, ${undo("if (await visit('alive') < 4) await new Promise((r) => setTimeout(r, 60_000));")});
       await step.do("b", async () => 1, ${undo()});
       throw new Error("over");`,
    );
    const { rid } = await harness.create("one");
    await harness.until(rid, () => harness.requests.includes("/alive"));
    for (const pid of harness.cells.pids) process.kill(pid, "SIGKILL");
    expect(await harness.ended(rid)).toMatchObject({ error: { rollback: { outcome: "complete" } } });
    const count = (step: string): number =>
      harness.requests.filter((path) => path.startsWith(`/undo-${step}`)).length;
    expect([count("b"), count("a")]).toEqual([1, 2]);
  });

  it("refuses options that it does not know", async () => {
    const { error } = await run(`await step.do("a", async () => 1, { rollback: () => {}, when: "always" });`);
    expect(error).toMatchObject({ message: expect.stringContaining('has no option "when"') });
  });
});

describe("values (20)", () => {
  const values = `[new Map([["a", new Set([1])]]), new Date(5), 10n, new Uint8Array([1, 2, 255]), undefined, -0, NaN, Infinity, /x/g, new TypeError("t"), { nested: [null, { a: undefined }] }]`;

  it("survive a replay unchanged", async () => {
    const { output } = await run(
      `const check = (v) => [v[0] instanceof Map && v[0].get("a").has(1), v[1] instanceof Date && +v[1] === 5, v[2] === 10n, v[3] instanceof Uint8Array && v[3][2] === 255, v[4] === undefined, Object.is(v[5], -0), Number.isNaN(v[6]), v[7] === Infinity, v[8].source === "x" && v[8].flags === "g", v[9] instanceof TypeError && v[9].message === "t", "a" in v[10].nested[1]];
       const v = await step.do("values", async () => ${values});
       const fresh = check(v);
       await step.sleep("so that it is replayed", 300);
       return [...fresh, ...check(v)].every(Boolean);`,
      { lingerMs: 0 },
    );
    expect(output).toBe(true);
  });

  it("keep only the viewed part of a large buffer", async () => {
    const { rid, status } = await run(
      `await step.do("view", async () => new Uint8Array(new ArrayBuffer(50_000_000), 10, 5));`,
    );
    expect(status).toBe("complete");
    const [row] = await harness.journal(rid);
    expect(row!.value!.length).toBeLessThan(100);
  });

  it.each([
    ["a function", `({ f: { g() {} } })`, "the value at .f.g is a function"],
    ["a symbol", `[Symbol("s")]`, "the value at [0] is a symbol"],
    ["a class instance", `({ a: new (class Mine {})() })`, "the value at .a is an instance of Mine"],
    ["a stream", `new ReadableStream()`, "it is an instance of ReadableStream"],
    ["a cycle", `(() => { const a = {}; a.b = a; return a; })()`, "the value at .b is a circular reference"],
  ])("%s fails the step at once, with its name and the path", async (_what, value, message) => {
    const { status, error } = await run(
      `await step.do("bad", async () => { await visit("bad"); return ${value}; });`,
    );
    expect(status).toBe("errored");
    expect((error as Error).message).toBe(`The result of step "bad-1" is not serialisable: ${message}`);
    expect(harness.requests).toHaveLength(1);
  });

  it("over 1 MiB fail the attempt", async () => {
    const { output } = await run(
      `const fits = (await step.do("fits", async () => "x".repeat(2 ** 20 - 2))).length;
       try { await step.do("big", { retries: { limit: 0, delay: 0 } }, async () => "x".repeat(2 ** 20)); } catch (error) { return [fits, error.message]; }`,
    );
    expect(output).toEqual([2 ** 20 - 2, "Step big-1 output is too large. Maximum allowed size is 1MiB."]);
  });
});

describe("names and limits (21, 23)", () => {
  it("counts uses of a name, in a loop and in parallel, the same in each replay", async () => {
    const { output, rid } = await run(
      `const loop = []; for (let i = 0; i < 50; i++) loop.push(await step.do("same", async ({ step: { count } }) => count));
       const parallel = await Promise.all(Array.from({ length: 200 }, (_, i) => step.do("same", async ({ step: { count } }) => { await new Promise((r) => setTimeout(r, (i * 7) % 13)); return count; })));
       await step.sleep("replay", 200);
       return [...loop, ...parallel];`,
      { lingerMs: 0 },
    );
    expect(output).toEqual(Array.from({ length: 250 }, (_, i) => i + 1));
    expect((await harness.journal(rid)).filter(({ kind }) => kind === "done")).toHaveLength(250);
  });

  it("refuses steps above the limit; sleeps do not count", async () => {
    const { error } = await run(
      `for (let i = 0; i < 10; i++) { await step.do("x", async () => i); await step.sleep("s", 0); } await step.do("one too many", async () => 1);`,
      { stepsMax: 10 },
    );
    expect((error as Error).message).toBe(
      "The limit of 10 steps has been reached. This limit can be changed in your worker configuration.",
    );
  });

  it.each([
    [`step.do("", async () => 1)`, 'Step name "" exceeds max length'],
    [`step.do("x".repeat(257), async () => 1)`, "exceeds max length (256 chars)"],
    [`step.do("a\\nb", async () => 1)`, "invalid characters"],
    [`step.do("x")`, 'Step "x" requires a callback function'],
    [`step.do("x", { retry: 1 }, async () => 1)`, 'has no option "retry"'],
    [`step.do("x", { timeout: 0 }, async () => 1)`, "more than 0"],
    [`step.sleep("x", "366 days")`, "at most 365 days"],
    [`step.sleep("x", "soon")`, 'such as "5 minutes"'],
    [`step.waitForEvent("x", { type: "a b" })`, "1 to 100 letters"],
    [`step.waitForEvent("x", { type: "x".repeat(101) })`, "1 to 100 letters"],
    [`step.waitForEvent("x", { type: "t", timeout: "366 days" })`, "at most 365 days"],
  ])("%s is refused: %s", async (call, message) => {
    const { error } = await run(`await ${call};`);
    expect((error as Error).message).toContain(message);
  });

  it("steps can be nested", async () => {
    const { output } = await run(
      `return await step.do("outer", async () => { const inner = await step.do("inner", async () => 2); return inner * 3; });`,
    );
    expect(output).toBe(6);
  });
});

it("code that reaches other steps than those of its journal causes a warning", async () => {
  const { rid, status } = await run(
    `const first = await visit("run"); if (first === 1) await step.do("only once", async () => 1); await step.sleep("replay", 100); await step.do("later", async () => 2);`,
    { lingerMs: 0 },
  );
  expect(status).toBe("complete");
  const { warnings } = new History(await harness.journal(rid));
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain('"only once-1"');
});
