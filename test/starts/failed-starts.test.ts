import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { FolderOwner } from "../../src/platform/storage/folder-owner.ts";
import { diagnose } from "../../src/cli/doctor/diagnosis.ts";
import { loadConfig } from "../../src/platform/config/config.ts";
import { serve, temporaryFolder } from "../helpers/process.ts";

interface Failure {
  code: number | null;
  stderr: string;
}

/** `selvedge serve` that is expected to fail. One that starts anyway is killed, and has no exit code. */
async function failing(...args: string[]): Promise<Failure> {
  const free = ["api", "edge", "edge-tls", "metrics", "dns"].flatMap((name) => [
    `--${name}-listen`,
    "127.0.0.1:0",
  ]);
  const child = spawn(process.execPath, ["bin/selvedge.js", "serve", ...free, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 120_000,
    killSignal: "SIGKILL",
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  child.stdout.on("data", () => child.kill("SIGKILL"));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stderr };
}

const listeners = {
  "api-listen": "management API",
  "edge-listen": "edge, HTTP",
  "edge-tls-listen": "edge, TLS",
  "metrics-listen": "metrics",
  "dns-listen": "name server",
  "health-listen": "health",
};

it.each(Object.entries(listeners))(
  "a taken port of --%s is named, before anything is created",
  async (flag, purpose) => {
    const taken = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void taken.close());
    await once(taken, "listening");
    const address = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
    const folder = temporaryFolder();
    const { code, stderr } = await failing("--data-dir", join(folder, "data"), `--${flag}`, address);
    expect(code).toBe(1);
    expect(stderr).toContain(`could not listen on ${address} (${purpose}): bind EADDRINUSE`);
    expect(stderr.trim().split("\n")).toHaveLength(2); // the chain of causes, and a hint
    expect(existsSync(join(folder, "data"))).toBe(false);
  },
);

it("a taken UDP port is named too", async () => {
  const taken = createSocket("udp4").bind(0, "127.0.0.1");
  onTestFinished(() => void taken.close());
  await once(taken, "listening");
  const address = `127.0.0.1:${taken.address().port}`;
  const { code, stderr } = await failing("--ephemeral", "--dns-listen", address);
  expect(code).toBe(1);
  expect(stderr).toContain(`could not listen on ${address} (name server): bind EADDRINUSE`);
});

it("a database that is away is named, and the folder is free again", async () => {
  const dataDir = temporaryFolder();
  const database = ["--database-url", "postgres://user:hidden@127.0.0.1:1/none"];
  const { code, stderr } = await failing("--data-dir", dataDir, ...database, "--database-wait-seconds", "0");
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^could not open the database: .*: connect ECONNREFUSED 127\.0\.0\.1:1\nNothing accepts/,
  );
  expect(stderr).not.toContain("hidden");
  expect(FolderOwner.find(dataDir)).toBeUndefined();
});

it("a file that is no database is named", async () => {
  const dataDir = temporaryFolder();
  writeFileSync(join(dataDir, "selvedge.db"), "this is not a database".repeat(100));
  const { code, stderr } = await failing("--data-dir", dataDir);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^could not open the database: .*file is not a database/);
});

it("a data folder has one owner, until that is killed", async () => {
  const dataDir = join(temporaryFolder(), "data");
  mkdirSync(dataDir);
  chmodSync(dataDir, 0o755);
  const first = await serve(["--data-dir", dataDir]);
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  const { code, stderr } = await failing("--data-dir", dataDir);
  expect(code).toBe(1);
  const { pid } = first.process;
  expect(stderr).toMatch(new RegExp(`in use by process ${pid}, started \\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z\\. `));
  const { config } = loadConfig({ dataDir }, {}, undefined);
  const findings = await diagnose(config);
  expect(findings.find(({ name }) => name === "data folder")?.detail).toContain(`in use by process ${pid}`);
  // Looking has not released the lock.
  expect((await failing("--data-dir", dataDir)).stderr).toContain(`process ${pid}`);
  first.process.kill("SIGKILL");
  await first.exited;
  const second = await serve(["--data-dir", dataDir]);
  second.process.kill("SIGTERM");
  expect(await second.exited).toBe(0);
  expect(existsSync(join(dataDir, "selvedge.pid"))).toBe(false);
});
