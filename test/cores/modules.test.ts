import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { temporaryFolder } from "../helpers/process.ts";
import { supervisedVariable } from "../../src/platform/processes/supervised.ts";
import { startCores } from "./cores.ts";

/** Work of main alone. In an edge process it would be memory and time of the start for nothing. */
const ofMain: Record<string, RegExp> = {
  "declarations of operations": /\/src\/(?!cli\/).*\/api(?:-(?!errors\.)[\w-]+)?\.ts$/,
  "the server of the API":
    /\/src\/control\/api\/(?:operation\.ts|server\/(?!declaration))|\/node_modules\/@?hono\//,
  "the name server": /\/src\/dns\/(?:name-server|dnssec|transfers|settings)\/(?!declaration)/,
  "the engine of workflows": /\/src\/products\/workflows\/(?:engine|store|cluster|cells)\//,
  "the engine of queues": /\/src\/products\/queues\/(?:delivery|messages|queues)/,
  D1: /\/src\/products\/d1\/(?!at-edges|binding-type|declaration)/,
  KV: /\/src\/products\/kv\/(?!at-edges|binding-type|declaration)/,
  "objects and their logs": /\/src\/(?:workers\/objects\/(?:alarms|recovery|query)|platform\/object-log)\//,
  "backups and migrations":
    /\/src\/platform\/(?:periodic-backups|storage\/(?:archive\/(?!errors)|migrations\/0))/,
  "uploads of Logpush": /\/src\/products\/logpush\/(?:uploader|destination)/,
  "the audit log": /\/src\/control\/audit\/(?!declaration)/,
};

it("an edge process loads no modules that only main needs", async () => {
  const folder = temporaryFolder();
  const hook = join(folder, "note-modules.mjs");
  writeFileSync(
    hook,
    `import { appendFileSync } from "node:fs";
    import { registerHooks } from "node:module";
    const role = JSON.parse(process.env["${supervisedVariable}"] ?? "{}").role ?? "supervisor";
    registerHooks({
      load(url, context, next) {
        appendFileSync(${JSON.stringify(folder)} + "/" + role, url + "\\n");
        return next(url, context);
      },
    });`,
  );
  const options = `--import=${pathToFileURL(hook).href}`;
  await using cores = await startCores(1, [], undefined, { NODE_OPTIONS: options });
  await cores.addName("www");
  const loaded = (role: string): string[] => readFileSync(join(folder, role), "utf8").trim().split("\n");
  const [edge, main] = [loaded("edge"), loaded("main")];
  const found = (urls: readonly string[], pattern: RegExp): string[] =>
    urls.filter((url) => pattern.test(url));
  const tooMany = Object.entries(ofMain).map(([what, pattern]) => [what, found(edge, pattern)]);
  expect(Object.fromEntries(tooMany)).toEqual(
    Object.fromEntries(Object.keys(ofMain).map((what) => [what, []])),
  );
  // The patterns still name modules that main loads.
  const unknown = Object.entries(ofMain).filter(([, pattern]) => found(main, pattern).length === 0);
  expect(unknown).toEqual([]);
});
