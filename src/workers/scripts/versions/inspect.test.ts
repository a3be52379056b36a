import { describe, expect, it } from "vitest";
import { inspect } from "./inspect.ts";
import { inspectCode } from "./inspection.ts";
import type { Module } from "../runtime-script.ts";

const js = (name: string, content: string): Module => ({ name, kind: "js", content });
const look = async (main: string, ...others: Module[]) =>
  inspect([js("main.js", main), ...others], "main.js");

describe("the handlers and exports of a script's source", () => {
  it.each<[what: string, code: string, handlers: string[]]>([
    ["an object", "export default { fetch() {}, async scheduled() {}, other() {} }", ["fetch", "scheduled"]],
    ["a name", "const worker = { fetch: () => {} }; export default worker", ["fetch"]],
    ["a name that is exported as default", "const w = { queue() {} }; export { w as default }", ["queue"]],
    ["a class", "export default class extends X { fetch() {} tail() {} static a() {} }", ["fetch", "tail"]],
    ["a value that a framework creates", "import { make } from 'node:x'; export default make()", ["fetch"]],
    ["an object with more spread into it", "export default { ...rest }", ["fetch"]],
  ])("%s", async (_what, code, handlers) => {
    expect(await look(code)).toMatchObject({ handlers });
  });

  it("include those that other modules export", async () => {
    const found = await look(
      'export { handler as default, Flow } from "./lib/all.js"; export * as more from "./lib/all.js";',
      js(
        "lib/all.js",
        'import { Base } from "../base.js"; export const handler = { fetch() {} }; export class Flow extends Base { run() {} }',
      ),
      js("base.js", "export class Base {}"),
    );
    expect(found).toMatchObject({
      handlers: ["fetch"],
      namedHandlers: [{ name: "Flow", handlers: ["run"] }],
      exportNames: ["Flow", "more"],
    });
  });

  it("are unknown if a module exports all names of another one", async () => {
    expect(await look('export * from "./a.js"', js("a.js", "export default 1"))).toMatchObject({
      exportNames: undefined,
    });
  });

  it.each<[what: string, code: string, fault: string]>([
    ["does not parse", "export default {\n  a b\n}", "Uncaught SyntaxError: Unexpected token at main.js:2:5"],
    ["imports a missing module", 'import "./a.js"; export default {fetch(){}}', 'No such module "./a.js"'],
    [
      "exports nothing that handles",
      "export const a = 1; export default function () {}",
      "No event handlers",
    ],
    [
      "is nested too deeply",
      `export default ${"[".repeat(50_000)}${"]".repeat(50_000)}`,
      "nested too deeply",
    ],
  ])("says why it cannot run: it %s", async (_what, code, fault) => {
    expect((await look(code)) as { fault: string }).toMatchObject({ fault: expect.stringContaining(fault) });
  });

  it("may come with imports of modules that the runtime has", async () => {
    const code =
      'import "node:buffer"; import "cloudflare:workers"; import "fs"; import x from "./data.txt"; export default { fetch() {} }';
    expect(await look(code, { name: "data.txt", kind: "text", content: "" })).toMatchObject({
      handlers: ["fetch"],
    });
  });
});

describe("code whose parsing has no end in sight", () => {
  const fetches = "export default { fetch() {} };";
  /** Its parser compares each name with all others. */
  const slow = fetches + Array.from({ length: 400_000 }, (_, i) => `let a${i};`).join("");
  const long = `${fetches}${" ".repeat(20_000)}`;
  const parse = async (account: string, code: string, seconds: number, heapMebibytes = 512) =>
    inspectCode(account, [js("main.js", code)], "main.js", { seconds, heapMebibytes });

  it("is refused after a time, and holds up only uploads of its account", async () => {
    const ended: string[] = [];
    const faults = [0, 1].map(async (i) => {
      const inspection = await parse("slow", slow, 1);
      ended.push(`slow ${i}`);
      return inspection;
    });
    expect(await parse("other", long, 30)).toMatchObject({ handlers: ["fetch"] });
    expect(ended).not.toContain("slow 1");
    const fault = "Uncaught Error: The code takes longer than 1 s to parse";
    expect(await Promise.all(faults)).toEqual([{ fault }, { fault }]);
    expect(await parse("slow", long, 30)).toMatchObject({ handlers: ["fetch"] });
  });

  it("is an error of the platform when the thread ends without a result", async () => {
    process.once("worker", (thread) => void thread.terminate());
    await expect(parse("ended", long, 600)).rejects.toThrow("ended without a result");
    expect(await parse("ended", long, 30)).toMatchObject({ handlers: ["fetch"] });
  });

  it("is refused when it needs too much memory", async () => {
    expect(await parse("large", fetches + "a;".repeat(1_500_000), 30, 32)).toEqual({
      fault: "Uncaught RangeError: The code needs more than 32 MiB to be parsed",
    });
  });
});
