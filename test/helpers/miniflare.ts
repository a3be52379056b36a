import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface Options {
  port: number;
  resourcePersistencePath: string;
  workers: object[];
}
type MiniflareClass = new (options: Options) => { ready: Promise<URL>; dispose(): Promise<void> };
const require = createRequire(import.meta.resolve("wrangler"));

export interface LocalScript {
  url: URL;
  close(): Promise<void>;
}

/** Runs a script as `wrangler dev` does, with data in a folder of its own. */
export async function startMiniflare(contents: string, env: Record<string, object>): Promise<LocalScript> {
  const { Miniflare } = require("miniflare") as { Miniflare: MiniflareClass };
  const folder = mkdtempSync(join(tmpdir(), "miniflare-"));
  const miniflare = new Miniflare({
    port: 0,
    resourcePersistencePath: folder,
    workers: [
      {
        config: {
          name: "script",
          compatibilityDate: "2026-11-01",
          manifest: { mainModule: "index.js", modules: { "index.js": { type: "esm", contents } } },
          env,
        },
      },
    ],
  });
  const close = async (): Promise<void> => {
    await miniflare.dispose();
    rmSync(folder, { recursive: true, force: true });
  };
  return { url: await miniflare.ready, close };
}
