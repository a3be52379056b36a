import { describe, expect, test } from "vitest";
import { usePrison } from "./prison.ts";

const prison = usePrison();

describe("the machine", () => {
  test.each([
    ["no file", `const fs = await import("node:fs"); return fs.readFileSync("/etc/passwd", "utf8")`],
    ["no process", `(await import("node:child_process")).execSync("id")`],
    ["no signal", `process.kill(1, 9)`],
    ["no thread", `const { Worker } = await import("node:worker_threads"); new Worker("1", { eval: true })`],
    ["no code from text", `return new Function("return 1")()`],
    ["no internals", `await import("cloudflare-internal:http")`],
    ["no unsafe modules", `await import("workerd:unsafe")`],
  ])("%s", async (_what, body) => {
    expect(await prison.hostile(body, { metadata: { compatibility_flags: ["nodejs_compat"] } })).toMatch(
      /^thrown: /,
    );
  });

  test("no environment, no name of the host", async () => {
    expect(
      await prison.hostile(
        `const os = await import("node:os"); return [Object.keys(process.env), os.networkInterfaces(), os.hostname()]`,
        {
          metadata: { compatibility_flags: ["nodejs_compat"] },
        },
      ),
    ).toEqual([[], {}, "localhost"]);
  });
});
