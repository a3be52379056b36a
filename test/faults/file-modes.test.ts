import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { fourColors, pngOf } from "../images/fixtures.ts";
import { serve, temporaryFolder } from "../helpers/process.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { callerOf, everyWrite } from "../helpers/writes.ts";

const environment = { SELVEDGE_API_TOKEN: "owner-token-for-tests", SELVEDGE_API_RATE_LIMIT: "0" };

/** Everything in a folder that other users can read, write or enter. */
const openIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => (statSync(path).mode & 0o077) !== 0)
    .map((path) => `${(statSync(path).mode & 0o777).toString(8)} ${path.slice(folder.length)}`);

it("a busy platform makes its files private, even in a folder that was open to others", async () => {
  const dataDir = temporaryFolder();
  const temporary = temporaryFolder();
  chmodSync(temporary, 0o711); // the cells' user must pass through it
  const args = ["--data-dir", dataDir, "--edge-tls-listen", "127.0.0.1:0"];
  const before = await serve(args, environment);
  before.process.kill("SIGTERM");
  await before.exited;
  // The modes that an older version left.
  mkdirSync(join(dataDir, "blobs/images/a"), { recursive: true });
  writeFileSync(join(dataDir, "blobs/images/a/old"), "content");
  for (const path of ["", "blobs", "blobs/images", "blobs/images/a"]) chmodSync(join(dataDir, path), 0o755);
  for (const path of ["selvedge.db", "blobs/images/a/old"]) chmodSync(join(dataDir, path), 0o644);
  writeFileSync(join(dataDir, "of another user"), "content", { mode: 0o644 });

  const server = await serve(args, { ...environment, TMPDIR: temporary });
  onTestFinished(() => void server.process.kill("SIGKILL"));
  const call = callerOf(server.ready.api);
  const account = server.ready.account_id;
  const png = await pngOf(fourColors(64, 48));
  const { writes, script } = await everyWrite(call, account, { png, largeBytes: 200 * 1024 });
  for (const [n, { kind, send }] of writes.entries())
    expect(`${kind}: ${(await send(n)).status}`).toMatch(/: 20[0-2]$/);
  const { subdomain } = (await call("GET", `/accounts/${account}/workers/subdomain`)).result as {
    subdomain: string;
  };
  const host = `${script}.${subdomain}.workers.localhost`;
  expect((await requestEdge(server.ready.edge, host)).body).toBe("hello");
  const image = (await call("GET", `/accounts/${account}/images/v1`)).result.images[0].id as string;
  const picture = await fetch(`${server.ready.delivery}/${server.ready.account_hash}/${image}/w=10,f=png`);
  expect(picture.status).toBe(200);

  await expect.poll(() => openIn(dataDir)).toEqual(["644 /of another user"]);
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  const names = readdirSync(dataDir);
  for (const name of ["selvedge.db", "selvedge.db-wal", "blobs", "cache", "tls"])
    expect(names).toContain(name);
  // Cells run as another user, who passes through the common folder to its own.
  const cells = readdirSync(temporary).find((name) => name.startsWith("selvedge-cells-"))!;
  expect(openIn(join(temporary, cells))).toEqual([]);
  expect(readdirSync(join(temporary, cells), { recursive: true }).join()).toContain("cell.sock");
});

it("a data folder that doctor creates is private", () => {
  const dataDir = join(temporaryFolder(), "new");
  const args = ["bin/selvedge.js", "doctor", "--json", "--data-dir", dataDir];
  try {
    execFileSync(process.execPath, args, { stdio: "ignore" });
  } catch {
    // It may find faults here, but still creates the folder.
  }
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
});

it("the secrets of scripts, which the platform itself never needs, are encrypted in the database", async () => {
  const dataDir = temporaryFolder();
  const server = await serve(["--data-dir", dataDir], environment);
  onTestFinished(() => void server.process.kill("SIGKILL"));
  const call = callerOf(server.ready.api);
  const png = await pngOf(fourColors(64, 48));
  const { script } = await everyWrite(call, server.ready.account_id, { png, largeBytes: 1024 });
  const text = "a-secret-that-can-be-searched-for";
  const path = `/accounts/${server.ready.account_id}/workers/scripts/${script}/secrets`;
  expect((await call("PUT", path, { name: "KEY", text, type: "secret_text" })).status).toBe(200);
  for (const name of ["selvedge.db", "selvedge.db-wal"]) {
    const bytes = readFileSync(join(dataDir, name));
    expect(bytes.includes(text)).toBe(false);
    expect(bytes.includes(environment.SELVEDGE_API_TOKEN)).toBe(false);
  }
});
