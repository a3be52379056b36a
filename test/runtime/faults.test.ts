import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { serve, temporaryFolder } from "../helpers/process.ts";
import { ownerToken } from "../helpers/server.ts";
import { callsOf } from "./platform.ts";

it("a failure of the platform is logged with its cause, and the script learns only that it failed", async () => {
  const dataDir = temporaryFolder();
  const server = await serve(["--data-dir", dataDir], { SELVEDGE_API_TOKEN: ownerToken });
  onTestFinished(async () => {
    server.process.kill();
    await server.exited;
  });
  const hosting = await callsOf(server.ready, ownerToken);
  const id = await hosting.createKv("files");
  await hosting.deploy("writer", {
    code: `export default { async fetch(request, { KV }) {
      try { await KV.put("large", "x".repeat(200_000)); return new Response("written"); }
      catch ({ message }) { return new Response(message); }
    } };`,
    bindings: [{ type: "kv_namespace", name: "KV", namespace_id: id }],
  });
  // Large values are stored as files, which now cannot be created.
  const incoming = join(dataDir, "blobs", "incoming");
  mkdirSync(dirname(incoming), { recursive: true });
  rmSync(incoming, { recursive: true, force: true });
  writeFileSync(incoming, "in the way");

  expect((await hosting.ask("writer")).body).toBe(
    "The platform failed to answer. See its log for the reason.",
  );
  await vi.waitFor(() => expect(server.stderr()).toContain(incoming));

  rmSync(incoming);
  expect((await hosting.ask("writer")).body).toBe("written");
});
