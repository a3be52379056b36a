import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/*
 * The benchmark's workflows on miniflare, as local Workers tools run them: `POST /One/ID` starts one, and its run
 * requests the URL in the body when it ends. Prints its port when it listens.
 */
interface Options {
  port: number;
  resourcePersistencePath: string;
  workers: object[];
}
type Miniflare = new (options: Options) => { ready: Promise<URL>; dispose(): Promise<void> };
const require = createRequire(import.meta.resolve("wrangler"));
const { Miniflare } = require("miniflare") as { Miniflare: Miniflare };

const code = `import { WorkflowEntrypoint } from "cloudflare:workers";
const steps = async (event, step, count) => {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += await step.do("s" + i, async () => i);
  await (await fetch(event.payload + event.instanceId)).text();
  return sum;
};
export class One extends WorkflowEntrypoint { run(event, step) { return steps(event, step, 1); } }
export class Ten extends WorkflowEntrypoint { run(event, step) { return steps(event, step, 10); } }
export default {
  async fetch(request, env) {
    const [, name, id] = new URL(request.url).pathname.split("/");
    await env[name].create({ id, params: await request.text() });
    return new Response();
  },
};`;
const workflow = (name: string): object => ({ type: "workflow", name, worker: "bench", exportName: name });
const folder = mkdtempSync(join(tmpdir(), "miniflare-"));
const miniflare = new Miniflare({
  port: 0,
  resourcePersistencePath: folder,
  workers: [
    {
      config: {
        name: "bench",
        compatibilityDate: "2026-11-01",
        manifest: { mainModule: "index.js", modules: { "index.js": { type: "esm", contents: code } } },
        env: { One: workflow("One"), Ten: workflow("Ten") },
      },
    },
  ],
});
const { port } = await miniflare.ready;
process.stdout.write(port);
process.once("SIGTERM", () => {
  void miniflare.dispose().then(() => {
    rmSync(folder, { recursive: true, force: true });
    process.exit(0);
  });
});
