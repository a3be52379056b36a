import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { EncryptedNames } from "../../src/platform/storage/archive/encrypted-names.ts";
import { EncryptedArchiveStore } from "../../src/platform/storage/archive/encrypted-store.ts";
import { FolderArchiveStore } from "../../src/platform/storage/archive/folder.ts";
import { readPartList } from "../../src/platform/storage/archive/part-list.ts";
import { unwrap, type WrappedKey } from "../../src/platform/storage/archive/passphrase-key.ts";
import { openBackup } from "../../src/platform/storage/backup/manifest.ts";
import { tablesOf } from "../../src/platform/storage/backup/model.ts";
import { verify } from "../../src/platform/storage/backup/verify.ts";
import { FileBlobs } from "../../src/platform/storage/blobs.ts";
import { currentSchema } from "../../src/platform/storage/migrations/migrate.ts";
import { openStorage } from "../../src/platform/storage/storage.ts";
import { fillTables } from "../helpers/fill-tables.ts";
import { serve, temporaryFolder, type ServerProcess } from "../helpers/process.ts";
import { s3Credentials, startS3 } from "../helpers/s3.ts";
import { ownerToken } from "../helpers/server.ts";
import { callerOf } from "../helpers/writes.ts";

/** Backups and a shipped log that are encrypted, over the command line. */
const run = promisify(execFile);
const passphrase = "a passphrase of tests";
const wrongPassphrase = "a passphrase of others";
const root = temporaryFolder();
const dataDir = join(root, "data");
const archive = join(root, "backups/first");
const isEqual = { passphrase, acceptsUnencrypted: false };
const at = (encryption = isEqual, name = "first") => ({
  store: new EncryptedArchiveStore(new FolderArchiveStore(join(root, "backups")), encryption),
  name,
});
let keys: string[];

/** Runs the command, and returns what it prints and how it ends. */
async function selvedge(
  args: string[],
  environment: Record<string, string> = {},
): Promise<{ code: number; text: string }> {
  const env = { ...process.env, ...environment };
  return run(process.execPath, ["bin/selvedge.js", ...args], { env }).then(
    ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
    (error: { code: number; stderr: string }) => ({ code: error.code, text: error.stderr }),
  );
}
const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));

beforeAll(async () => {
  await (await openStorage(`sqlite:${join(dataDir, "selvedge.db")}`)).close();
  const blobs = new FileBlobs(join(dataDir, "blobs"));
  keys = fillTables(join(dataDir, "selvedge.db"), await tablesOf(currentSchema), 3);
  for (const key of keys) await blobs.put(key, Buffer.from(`content of ${key}`));
  mkdirSync(join(dataDir, "tls"));
  writeFileSync(join(dataDir, "tls/key.pem"), "a private key");
  writeFileSync(join(root, "passphrase"), `${passphrase}\n`, { mode: 0o600 });
});
afterAll(() => rmSync(root, { recursive: true }));

describe("an encrypted backup", () => {
  beforeAll(async () => {
    mkdirSync(join(root, "backups"));
    const args = ["backup", archive, "--encrypt", "--data-dir", dataDir];
    expect(await selvedge([...args, "--backup-passphrase-file", join(root, "passphrase")])).toMatchObject({
      code: 0,
    });
  });

  it("shows no content and no names, and is private", async () => {
    const files = filesOf(archive);
    const { manifest } = await openBackup(at());
    expect(files).toHaveLength(manifest.tables.length + manifest.blobs.count + manifest.files.length + 4);
    const visible = files.map((file) => file + readFileSync(file, "latin1")).join("\n");
    for (const hidden of [
      ...keys,
      "content of",
      "private key",
      "kv_entries",
      "ndjson",
      "schema",
      "blobs",
      "tables",
      "created_on",
    ])
      expect(visible.replaceAll(root, "").includes(hidden), hidden).toBe(false);
    for (const file of files) expect(statSync(file).mode & 0o077, file).toBe(0);
  });

  it("is verified and restored with the passphrase only, from a file or the environment", async () => {
    const env = { SELVEDGE_BACKUP_PASSPHRASE: passphrase };
    expect(await selvedge(["backup", "verify", archive], env)).toMatchObject({ code: 0 });
    for (const [environment, message] of [
      [{}, "is encrypted. Set --backup-passphrase-file or SELVEDGE_BACKUP_PASSPHRASE"],
      [{ SELVEDGE_BACKUP_PASSPHRASE: wrongPassphrase }, "was encrypted with another one"],
    ] as const) {
      const refused = await selvedge(["restore", archive, "--data-dir", join(root, "refused")], environment);
      expect(refused.code).toBeGreaterThan(0);
      expect(refused.text).toContain(message);
      expect(refused.text).not.toContain(wrongPassphrase);
    }
    expect(readdirSync(root)).not.toContain("refused");
    expect(await selvedge(["restore", archive, "--data-dir", join(root, "restored")], env)).toMatchObject({
      code: 0,
    });
    for (const key of keys)
      expect(readFileSync(join(root, "restored/blobs", key), "utf8")).toBe(`content of ${key}`);
  });

  it("with a flipped byte, a cut, or a file in another's place is refused, with the part's name", async () => {
    const { files, manifest } = await openBackup(at());
    const { key } = JSON.parse(readFileSync(join(archive, "manifest.json"), "utf8")) as { key: WrappedKey };
    const names = new EncryptedNames(await unwrap(key, passphrase, archive));
    const [blob] = await Array.fromAsync(readPartList(files, manifest.blobs));
    const kinds = [manifest.tables[0]!, manifest.files[0]!, manifest.blobs, blob!].map(({ path }) => path);
    const damages: ((bytes: Buffer) => Buffer)[] = [
      (bytes) => Buffer.from(bytes.map((byte, n) => (n === bytes.length >> 1 ? byte ^ 4 : byte))),
      (bytes) => bytes.subarray(0, -1),
      () => readFileSync(join(archive, names.encrypt(manifest.tables[1]!.path))),
      () => Buffer.alloc(0),
    ];
    const withDamage = async (
      file: string,
      damage: (bytes: Buffer) => Buffer,
      named: string,
    ): Promise<void> => {
      const path = join(archive, file);
      const whole = readFileSync(path);
      writeFileSync(path, damage(whole));
      await expect(verify(at())).rejects.toThrow(`The backup is damaged: ${named} `);
      writeFileSync(path, whole);
    };
    for (const [index, kind] of kinds.entries()) {
      await withDamage(names.encrypt(kind), damages[0]!, kind);
      await withDamage(names.encrypt(kind), damages[index]!, kind);
    }
    for (const file of ["manifest.json", "manifest.sha256"])
      await withDamage(file, damages[0]!, "manifest.json");
    await verify(at());
  });

  it("is refused if it is not the operator's: one without encryption in its place", async () => {
    const target = join(root, "backups/plain");
    expect(await selvedge(["backup", target, "--data-dir", dataDir])).toMatchObject({ code: 0 });
    const refusal = "is not encrypted, although there is a passphrase";
    await expect(verify(at(isEqual, "plain"))).rejects.toThrow(refusal);
    await verify(at({ ...isEqual, acceptsUnencrypted: true }, "plain"));
    const insisting = await selvedge([
      "backup",
      join(root, "backups/none"),
      "--encrypt",
      "--data-dir",
      dataDir,
    ]);
    expect(insisting.text).toContain("for --encrypt but received none");
  });
});

it("a backup in a bucket is encrypted, unless the operator says otherwise by name", async () => {
  const s3 = await startS3();
  try {
    const env = {
      AWS_ACCESS_KEY_ID: s3Credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: s3Credentials.secretAccessKey,
    };
    const url = (name: string): string => {
      const target = new URL(s3.url);
      target.pathname += `/${name}`;
      return target.href;
    };
    const backup = (name: string, ...more: string[]) =>
      selvedge(["backup", url(name), "--data-dir", dataDir, ...more], env);
    const refused = await backup("plain");
    expect(refused.code).toBe(1);
    expect(refused.text).toContain("Add --backup-unencrypted to write it without encryption");
    expect(s3.buckets.objects().size).toBe(0);
    const serving = await selvedge(
      ["serve", "--data-dir", join(root, "bucket"), "--backup-every", "1h", "--backup-folder", url("")],
      env,
    );
    expect(serving.text).toContain("for --backup-folder");
    expect(await backup("plain", "--backup-unencrypted")).toMatchObject({ code: 0 });
    const secret = ["--backup-passphrase-file", join(root, "passphrase")];
    expect(await backup("sealed", ...secret)).toMatchObject({ code: 0 });
    const sealed = [...s3.buckets.objects()].filter(([key]) => key.includes("sealed/"));
    expect(sealed.length).toBeGreaterThan(20);
    for (const [key, { bytes }] of sealed)
      expect(key + bytes.toString("latin1")).not.toMatch(/kv_entries|content of/);
    expect(
      await selvedge(["restore", url("sealed"), "--data-dir", join(root, "from-bucket"), ...secret], env),
    ).toMatchObject({ code: 0 });
  } finally {
    await s3.stop();
  }
});

it("a shipped log is encrypted, goes on after a restart, and is restored with the passphrase only", async () => {
  const folder = join(root, "log");
  const target = join(folder, "backups");
  const args = ["--data-dir", join(folder, "data"), "--backup-folder", target, "--backup-log", "1s"];
  const env = { SELVEDGE_API_TOKEN: ownerToken, SELVEDGE_BACKUP_PASSPHRASE_FILE: join(root, "passphrase") };
  let server: ServerProcess | undefined;
  const write = async (name: string, large: boolean): Promise<void> => {
    const call = callerOf(server!.ready.api);
    const base = `/accounts/${server!.ready.account_id}/storage/kv/namespaces`;
    const { result } = await call("POST", base, { title: name });
    const value = large ? Buffer.alloc(200 * 1024, name) : name;
    expect((await call("PUT", `${base}/${result.id as string}/values/key`, value)).status).toBe(200);
  };
  const stop = async (): Promise<void> => {
    server!.process.kill("SIGTERM");
    await server!.exited;
  };
  const chains = (): string[] => filesOf(target).filter((file) => !file.endsWith("key.json"));
  server = await serve(args, env);
  await vi.waitFor(() => expect(chains().length).toBeGreaterThan(2), { interval: 50 });
  await write("before the restart", true);
  await stop();
  server = await serve(args, env);
  await write("after the restart", true);
  await write("a short one", false);
  await stop();
  for (const file of filesOf(target))
    expect(file.slice(target.length) + readFileSync(file, "latin1")).not.toMatch(
      /restart|short|segments|SQLite/,
    );

  const restoring = (name: string, environment: Record<string, string>) =>
    selvedge(["restore", target, "--to-time", "now", "--data-dir", join(folder, name)], environment);
  expect((await restoring("without", {})).text).toContain("is encrypted. Set --backup-passphrase-file");
  expect((await restoring("wrong", { SELVEDGE_BACKUP_PASSPHRASE: wrongPassphrase })).text).toContain(
    "another one",
  );
  expect(await restoring("right", { SELVEDGE_BACKUP_PASSPHRASE: passphrase })).toMatchObject({ code: 0 });
  const database = new DatabaseSync(join(folder, "right/selvedge.db"));
  const rows = database.prepare("select value, blob_key from kv_entries").all() as {
    value: Uint8Array | null;
    blob_key: string | null;
  }[];
  database.close();
  const values = rows.map(({ value, blob_key: key }) =>
    key === null
      ? Buffer.from(value!).toString()
      : readFileSync(join(folder, "right/blobs", key), "utf8").slice(0, 18),
  );
  expect(values.toSorted()).toEqual(["a short one", "after the restarta", "before the restart"]);

  const freePorts = ["api", "edge", "dns"].flatMap((name) => [`--${name}-listen`, "127.0.0.1:0"]);
  for (const [environment, message] of [
    [{ SELVEDGE_BACKUP_PASSPHRASE: wrongPassphrase }, "was encrypted with another one"],
    [{}, "is encrypted. Set --backup-passphrase-file"],
  ] as const)
    expect((await selvedge(["serve", ...args, ...freePorts], environment)).text).toContain(message);
});
