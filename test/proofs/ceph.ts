import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { S3ArchiveStore } from "../../src/platform/storage/archive/s3.ts";
import { backUp } from "../../src/platform/storage/backup/back-up.ts";
import { tablesOf } from "../../src/platform/storage/backup/model.ts";
import { openSource } from "../../src/platform/storage/backup/open-source.ts";
import { restore } from "../../src/platform/storage/backup/restore.ts";
import { verify } from "../../src/platform/storage/backup/verify.ts";
import { FileBlobs } from "../../src/platform/storage/blobs.ts";
import { contentOf } from "../../src/platform/storage/blobs/content.ts";
import { S3Client } from "../../src/platform/storage/blobs/s3-client.ts";
import { S3Store } from "../../src/platform/storage/blobs/s3-store.ts";
import { S3Fault } from "../../src/platform/storage/blobs/s3-xml.ts";
import { currentSchema } from "../../src/platform/storage/migrations/migrate.ts";
import { openStorage } from "../../src/platform/storage/storage.ts";
import { fillTables } from "../helpers/fill-tables.ts";
import { freePort } from "../helpers/free-port.ts";

/**
 * `node test/proofs/ceph.ts`: the stores of blobs and of backups against Ceph's gateway, which verifies signatures and
 * digests by code that is not ours. Needs `apt-get install --no-install-recommends radosgw ceph-mon ceph-osd ceph-common`.
 * One monitor, one OSD in memory.
 */
const folder = mkdtempSync(join(tmpdir(), "selvedge-ceph-"));
const children: ChildProcess[] = [];
const [monitor, gateway] = [await freePort(), await freePort()];
const conf = join(folder, "ceph.conf");
const credentials = { accessKeyId: "AKPROOF", secretAccessKey: randomBytes(12).toString("hex") };

const run = (program: string, ...args: string[]): void => {
  execFileSync(program, args[0] === "--create" ? args : ["-c", conf, ...args], {
    stdio: ["ignore", "ignore", "pipe"],
    timeout: 60_000,
  });
};
const begin = (program: string, ...args: string[]): void => {
  children.push(spawn(program, ["-c", conf, ...args, "-f"], { stdio: "ignore" }));
};

async function startCeph(): Promise<void> {
  const [id, osd] = [randomUUID(), randomUUID()];
  const lines = [
    `[global]\nfsid = ${id}\nmon host = v1:127.0.0.1:${monitor}\nmon initial members = a`,
    "auth cluster required = none\nauth service required = none\nauth client required = none\nms bind msgr2 = false",
    "osd pool default size = 1\nosd pool default min size = 1\nosd pool default pg num = 4\nosd crush chooseleaf type = 0",
    "mon allow pool size one = true\nosd objectstore = memstore\nmemstore device bytes = 2147483648",
    `run dir = ${folder}\nadmin socket = ${folder}/$name.asok\nlog file = ${folder}/$name.log\npid file =`,
    `mon data = ${folder}/mon\nosd data = ${folder}/osd\nrgw data = ${folder}/rgw\nsetuser match path =`,
    `rgw frontends = beast endpoint=127.0.0.1:${gateway}\npublic addr = 127.0.0.1\ncluster addr = 127.0.0.1\n`,
  ];
  writeFileSync(conf, lines.join("\n"));
  for (const each of ["osd", "rgw"]) mkdirSync(join(folder, each));
  run(
    "monmaptool",
    "--create",
    "--addv",
    "a",
    `v1:127.0.0.1:${monitor}`,
    "--fsid",
    id,
    join(folder, "monmap"),
  );
  run("ceph-mon", "--mkfs", "-i", "a", "--monmap", join(folder, "monmap"));
  begin("ceph-mon", "-i", "a");
  run("ceph", "osd", "create", osd);
  run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd);
  begin("ceph-osd", "-i", "0", "--osd-uuid", osd);
  const { accessKeyId, secretAccessKey } = credentials;
  const user = [
    "--uid=proof",
    "--display-name=proof",
    `--access-key=${accessKeyId}`,
    `--secret-key=${secretAccessKey}`,
  ];
  run("radosgw-admin", "user", "create", ...user);
  begin("radosgw", "-n", "client.rgw");
  const isUp = async (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${gateway}`).then(
      ({ status }) => status === 200,
      () => false,
    );
  for (let tries = 0; !(await isUp()); tries++) {
    if (tries > 600) throw new Error("the gateway does not answer");
    await delay(100);
  }
}

function check(what: string, isRight: boolean): void {
  if (!isRight) throw new Error(`wrong: ${what}`);
  console.log(`right: ${what}`);
}
const address = {
  endpoint: `http://127.0.0.1:${gateway}`,
  bucket: "proof",
  isInPath: true,
  region: "us-east-1",
};
const storeAt = (prefix: string): S3Store => new S3Store({ ...address, prefix, credentials });
const statusOf = async (work: Promise<unknown>): Promise<number> =>
  work.then(
    () => 200,
    (error: unknown) => (error instanceof S3Fault ? error.status : 0),
  );

async function proveStore(): Promise<void> {
  const store = storeAt("blobs/");
  const small = randomBytes(10_000);
  const large = randomBytes(100 * 1024 * 1024);
  await store.put("a/small", contentOf(small));
  await store.put("a/large", contentOf(large));
  for (const [key, bytes] of [
    ["a/small", small],
    ["a/large", large],
  ] as const) {
    const found = (await store.get(key))!;
    check(`${key} is read as it was written`, (await buffer(found.stream)).equals(bytes));
    check(`${key} has its digest`, found.sha256 === contentOf(bytes).sha256);
  }
  for (let n = 0; n < 1100; n += 20)
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => store.put(`many/${n + i}`, contentOf(Buffer.from(String(n))))),
    );
  const listed = await Array.fromAsync(store.list("many/"));
  check(
    "1,100 keys are listed over two pages, with ages",
    listed.length === 1100 && listed.every(({ ageMs }) => ageMs < 600_000),
  );
  check("folders are listed", (await store.folders("")).toSorted().join() === "a,many");
  await store.delete("a/small");
  check(
    "a deleted key is missing",
    (await store.head("a/small")) === undefined && (await store.get("a/small")) === undefined,
  );
  const wrong = new S3Store({
    ...address,
    prefix: "",
    credentials: { ...credentials, secretAccessKey: "wrong" },
  });
  check("a wrong signature is refused", (await statusOf(wrong.put("x", contentOf(small)))) === 403);
  const lying = { ...contentOf(small), sha256: contentOf(large).sha256 };
  check(
    "a wrong digest is refused",
    (await statusOf(store.put("x", lying))) !== 200 && (await store.head("x")) === undefined,
  );
  const pieces = async function* (end = large.length): AsyncGenerator<Buffer> {
    for (let at = 0; at < end; at += 1_000_000) yield large.subarray(at, at + 1_000_000);
  };
  await store.putStream("streamed", pieces());
  check("a stream is stored in parts", (await buffer((await store.get("streamed"))!.stream)).equals(large));
  check(
    "an existing object is kept",
    (await statusOf(store.putStream("streamed", pieces(1_000_000), { isNew: true }))) === 412,
  );
  const client = new S3Client({ ...address, credentials });
  await client.text({ method: "POST", key: "blobs/left", query: { uploads: "" } });
  await store.removeAbandoned(-60_000);
  const { text } = await client.text({ method: "GET", query: { uploads: "" } });
  check("uploads of writers that died are removed", !text.includes("<UploadId>"));
  for (const each of [store, wrong, client]) await each.close();
}

async function proveBackups(): Promise<void> {
  const dataDir = join(folder, "data");
  const url = `sqlite:${join(dataDir, "selvedge.db")}`;
  await (await openStorage(url)).close();
  const blobs = new FileBlobs(join(dataDir, "blobs"));
  for (const key of fillTables(join(dataDir, "selvedge.db"), await tablesOf(currentSchema), 50))
    await blobs.put(key, randomBytes(100_000));
  const store = new S3ArchiveStore(storeAt("backups/"), "s3://proof/backups");
  const source = await openSource(url);
  const input = { source, blobs, dataDir };
  const ends = await Promise.allSettled(
    [1, 2].map(async () => backUp({ ...input, target: { store, name: "one" } })),
  );
  check(
    "of two backups with one name, one is kept",
    ends.filter(({ status }) => status === "fulfilled").length === 1,
  );
  await verify({ store, name: "one" });
  const to = join(folder, "restored");
  const into = {
    dataDir: to,
    databaseUrl: `sqlite:${join(to, "selvedge.db")}`,
    blobs: new FileBlobs(join(to, "blobs")),
  };
  const manifest = await restore({ archive: { store, name: "one" }, ...into });
  check("a backup is restored", manifest.blobs.count === 150);
  await store.remove("one");
  check("a removed backup leaves nothing", (await Array.fromAsync(store.files.list(""))).length === 0);
  await source.close();
  await store.close();
}

try {
  await startCeph();
  const client = new S3Client({ ...address, credentials });
  await client.text({ method: "PUT" });
  await client.close();
  await proveStore();
  await proveBackups();
} finally {
  for (const child of children.toReversed()) {
    child.kill("SIGKILL");
    await new Promise((ended) =>
      child.exitCode === null && child.signalCode === null ? child.once("exit", ended) : ended(0),
    );
  }
  rmSync(folder, { recursive: true, force: true });
}
