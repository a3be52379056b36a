import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { temporaryFolder } from "./helpers/process.ts";

/** The blocks of the README's tour, as one script: shell blocks as they stand, JavaScript given to Node. */
function tour(): string {
  const blocks = [...readFileSync("README.md", "utf8").matchAll(/^```(sh|js) tour\n(.*?)^```$/gms)];
  expect(blocks.length).toBeGreaterThan(4);
  return blocks
    .map(([, kind, code]) => (kind === "sh" ? code : `node --input-type=module - <<'JS'\n${code}JS\n`))
    .join("\n");
}

interface Run {
  stdout: string;
  stderr: string;
  code: number | null;
}
function run(
  command: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
): { done: Promise<Run>; output(): string; kill(): void } {
  // A process group of its own, so that what the tour leaves in the background ends with it.
  const child = spawn(command, args, { env: environment, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const result: Run = { stdout: "", stderr: "", code: null };
  child.stdout.on("data", (chunk: Buffer) => (result.stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (result.stderr += chunk.toString()));
  const done = new Promise<Run>((resolve) => child.on("exit", (code) => resolve({ ...result, code })));
  return { done, output: () => result.stdout, kill: () => void process.kill(-child.pid!, "SIGTERM") };
}

it("the tour works as it is written", async () => {
  // As `npm start` runs it, on the ports that the tour names, but with data that is thrown away.
  const serving = run(
    process.execPath,
    ["bin/selvedge.js", "serve", "--data-dir", temporaryFolder()],
    process.env,
  );
  const exports = await new Promise<[string, string][]>((resolve, reject) => {
    const look = (): void => {
      const found = [...serving.output().matchAll(/export (\w+)=(\S+)/g)].map(
        ([, name, value]) => [name!, value!] as [string, string],
      );
      if (found.length >= 4) resolve(found);
      else setTimeout(look, 20);
    };
    look();
    void serving.done.then(({ stderr }) => reject(new Error(`serve ended: ${stderr}`)));
  });
  const shell = run("bash", ["-euo", "pipefail", "-c", `${tour()}\nkill %1`], {
    ...process.env,
    ...Object.fromEntries(exports),
  });
  const { stdout, stderr, code } = await shell.done;
  serving.kill();
  // npm may have something to say about the machine that it runs on.
  const complaints = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("npm warn"));
  expect({ code, complaints }).toEqual({ code: 0, complaints: [] });
  expect(stdout.split("\n").slice(0, 5)).toEqual([
    "www.shop.example",
    "http_request_origin",
    "hello from the origin, 127.0.0.1",
    "on",
    "on",
  ]);
  expect(stdout).toContain("TXT shop.example");
  expect(stdout).toContain("\nhello\nhello from a script\n");
  expect(stdout).toContain('http.request.uri.path  =  "/app/cart"');
  expect(stdout).toContain("www.shop.example.\t1\tIN\tA\t127.0.0.1");
  await serving.done;
});
