import { expect, it } from "vitest";
import { checkModule, moduleFaultText } from "./check-module.ts";

const main = (code: string) => checkModule(code, { isMain: true });
const handler = "export default { async fetch(request) { return fetch(request); } };";

it.each([
  ["a method", handler],
  ["an arrow function", "export default { fetch: async (request) => new Response(request.url) };"],
  ["the global fetch itself", "export default { fetch };"],
  ["a quoted key", 'export default { "fetch"(request) { return fetch(request); } };'],
  ["a constant", "const handler = { fetch() {} };\nexport default handler;"],
  ["a named export as default", "const handler = { fetch() {} };\nexport { handler as default };"],
  ["spread methods", "const base = { fetch() {} };\nexport default { ...base };"],
  ["the result of a call", "export default Object.freeze({ fetch() {} });"],
  ["listening to a signal", handler.replace("return", "request.signal.addEventListener('abort', f); return")],
  ["words in text", `const note = "import('x') and addEventListener()"; // import "y"\n${handler}`],
  ["import.meta", `const url = import.meta.url;\n${handler}`],
  ["top-level await", `const x = await Promise.resolve(1);\n${handler}`],
  ["named exports beside it", `export const version = 1;\n${handler}`],
  ["a byte order mark", `\uFEFF${handler}`],
])("takes %s", async (_what, code) => {
  expect(await main(code)).toBeUndefined();
});

it.each([
  ["const a = ;\n", "SyntaxError: Unexpected token", 1, 11],
  [`${handler}\n\n  let x = 1; let x = 2;`, "SyntaxError: Identifier 'x' has already been declared", 3, 18],
  ["with (a) {}", "SyntaxError: 'with' in strict mode", 1, 1],
  ["export default { fetch() { return \\u0069mport('x'); } }", "SyntaxError", 1, 35],
  [`import a from "./a.js";\n${handler}`, "import is not available", 1, 1],
  [`import "node:fs";\n${handler}`, "import is not available", 1, 1],
  [
    'export default {\n  async fetch() {\n    const f = () => () => import("cloudflare:sockets");\n  },\n};',
    "import() is not available",
    3,
    27,
  ],
  [`${handler}\nexport * from "./b.js";`, "export … from is not available", 2, 1],
  [`${handler}\nexport * as b from "./b.js";`, "export … from is not available", 2, 1],
  [`${handler}\nexport { b } from "./b.js";`, "export … from is not available", 2, 1],
  ['export { default } from "./b.js";', "export … from is not available", 1, 1],
  ['addEventListener("fetch", (event) => {});', "addEventListener is not available", 1, 1],
  [`${handler}\nself.addEventListener("fetch", f);`, "addEventListener is not available", 2, 1],
  [`${handler}\nglobalThis["addEventListener"]("fetch", f);`, "addEventListener is not available", 2, 1],
  ["", "no default export", 1, 1],
  ["export const fetch = () => {};", "no default export", 1, 1],
  ["\nexport default {};", "no fetch method", 2, 1],
  ["export default { async Fetch() {} };", "no fetch method", 1, 1],
  ["const a = { scheduled() {} };\nexport default a;", "no fetch method", 2, 1],
  ["const a = { scheduled() {} };\nexport { a as default };", "no fetch method", 2, 1],
  ["export default { fetch: 5 };", "fetch is not a function", 1, 18],
  ["export default async function (request) {}", "is a function", 1, 1],
  ["export default (request) => fetch(request);", "is a function", 1, 1],
  ["class A { fetch() {} }\nexport default A;", "is a class", 2, 1],
  ["export default 'hello';", "not an object with a fetch method", 1, 1],
])("refuses %j", async (code, message, line, column) => {
  const fault = await main(code);
  expect(fault?.message).toContain(message);
  expect(fault).toMatchObject({ line, column });
});

it("reports the first of several faults", async () => {
  const fault = await main('export default { fetch() { import("a"); } };\nimport "b";');
  expect(fault).toMatchObject({ line: 1, column: 28 });
});

it("requires no default export in other files", async () => {
  expect(await checkModule("const a = 1;", { isMain: false })).toBeUndefined();
  expect(await checkModule('import "x";', { isMain: false })).toMatchObject({ line: 1 });
});

it("survives very deeply nested code", async () => {
  expect((await main(`${"(".repeat(30_000)}1${")".repeat(30_000)}`))?.message).toContain(
    "Not enough stack space",
  );
  expect((await main("[".repeat(32_000)))?.message).toBeDefined();
  expect(await main(`x${".y".repeat(15_000)};${handler}`)).toBeUndefined();
});

it("shows the position in the line", async () => {
  const code = `\tconst x = 1;\n\tconst y = import("z");\n${handler}`;
  expect(moduleFaultText(code, (await main(code))!)).toBe(
    [
      "line 2, column 12: import() is not available: a snippet cannot load other modules",
      ' const y = import("z");',
      "           ^",
    ].join("\n"),
  );
});

it("shows only a part of a long line", async () => {
  const code = `${"a();".repeat(1000)}import("z");`;
  const lines = moduleFaultText(code, (await main(code))!).split("\n");
  expect(lines[1]!.length).toBe(72);
  expect(lines[1]!.slice(lines[2]!.length - 1)).toBe('import("z");');
});
