import { runInThisContext } from "node:vm";
import { expect, it } from "vitest";
import { identifier, link } from "./worker-linker.ts";
import { loadable } from "./worker-sources.ts";

const evaluate = (text: string): unknown => runInThisContext(`(() => {${text}})()`);

it("runs each module once, after those that it imports, and gives its exports", () => {
  const sources: Record<string, string> = {
    "a/main.js": `import { double as twice, names } from "../b/lib.js";
import "./side.js";
export const value = twice(2);
export async function later() {}
export       class Thing {}
const hidden = 1;
names.push("main");
export { hidden as shown };`,
    "a/side.js": `import { names } from "../b/lib.js";\nnames.push("side");`,
    "b/lib.js": `export const names = ["lib"];\nexport function double(n) { return n * 2; }`,
  };
  const text = link(["a/main.js", "b/lib.js"], (name) => sources[name]!);
  expect(evaluate(`${text}return [${identifier("a/main.js")}, ${identifier("b/lib.js")}.names]`)).toEqual([
    { value: 4, later: expect.any(Function) as unknown, Thing: expect.any(Function) as unknown, shown: 1 },
    ["lib", "side", "main"],
  ]);
});

it.each(["export default 1;", 'export * from "./x.js";', 'import x from "./x.js";', "export let x = 1;"])(
  "refuses a module with %s",
  (statement) => {
    expect(() => link(["x.js"], () => statement)).toThrow("x.js cannot be linked");
  },
);

it("adds one module with code that exports entrypoints only, in a folder of its own", () => {
  const main = { name: "__selvedge/main.js", kind: "js" as const, content: "export default {};" };
  const script = loadable({
    id: "s@1",
    owner: "s",
    accountId: "account",
    profile: "script",
    mainModule: main.name,
    modules: [main],
    compatibilityDate: "2026-11-01",
    compatibilityFlags: [],
    cpuMs: 50,
    memoryBytes: 1e8,
    env: {},
    bindings: [
      {
        name: "KV",
        module: "products/kv/worker/binding.js",
        factory: "kvNamespace",
        className: "KvNamespace",
        description: { name: "KV" },
      },
    ],
    classNames: ["Other"],
    hasWorkflows: true,
  }) as { mainModule: string; modules: Record<string, { js: string }> };
  expect(Object.keys(script.modules)).toEqual([
    main.name,
    "cloudflare:sockets",
    "__selvedge_/user.js",
    "__selvedge_/entry.js",
  ]);
  expect(script.mainModule).toBe("__selvedge_/entry.js");
  const exported = script.modules[script.mainModule]!.js.match(/^export .*?(?= =|;)/gm);
  expect(exported).toEqual([
    "export const Entry",
    "export const WorkflowInvocations",
    'export { entry0 as "Entry:Other", rpc0 as "Rpc:Other" }',
    "export const Control",
  ]);
});
