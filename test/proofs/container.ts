import { execFileSync, spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { freePort } from "../helpers/free-port.ts";

/*
 * Builds packaging/Dockerfile with buildah and starts it, as root and without a registry: the base image is Debian from
 * mmdebstrap with the Node of this clone. About five minutes. Needs
 * `apt-get install --no-install-recommends buildah mmdebstrap`.
 *
 *   node test/proofs/container.ts [--base TAR]
 *
 * --base names a root file system that an earlier run of mmdebstrap made.
 */
const { values } = parseArgs({ options: { base: { type: "string" } } });
const root = mkdtempSync(join(tmpdir(), "selvedge-container-"));
const storage = ["--root", join(root, "storage"), "--runroot", join(root, "run")];
const env = { ...process.env, STORAGE_DRIVER: "vfs", BUILDAH_ISOLATION: "chroot" };
const buildah = (...args: string[]): string =>
  execFileSync("buildah", [...storage, ...args], {
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  }).trim();

try {
  makeBase(join(root, "base"));
  buildah("bud", "--quiet", "--tag", "node-local", join(root, "base"));
  execFileSync("git", ["clone", "--quiet", ".", join(root, "clone")]);
  const build = ["--build-arg", "NODE_IMAGE=localhost/node-local", "--file", "packaging/Dockerfile"];
  buildah("bud", "--quiet", "--format", "docker", ...build, "--tag", "selvedge", join(root, "clone"));
  await startIn(buildah("from", "localhost/selvedge"));
} finally {
  rmSync(root, { recursive: true, force: true });
}

/** Debian, the Node of this clone, the npm of this machine, and the authorities that this machine trusts. */
function makeBase(folder: string): void {
  const tar = join(root, "debian.tar");
  if (values.base === undefined) {
    const packages = "--include=ca-certificates,libatomic1,libstdc++6";
    execFileSync("mmdebstrap", ["--quiet", "--variant=minbase", packages, "bookworm", tar]);
  } else cpSync(values.base, tar);
  const npm = realpathSync(execFileSync("sh", ["-c", "command -v npm"], { encoding: "utf8" }).trim());
  cpSync(tar, join(folder, "debian.tar"));
  cpSync("node_modules/node/bin/node", join(folder, "node"), { dereference: true });
  cpSync(join(npm, "../.."), join(folder, "npm"), { recursive: true });
  const authorities = "etc/ssl/certs/ca-certificates.crt";
  if (existsSync(`/${authorities}`))
    cpSync(realpathSync(`/${authorities}`), join(folder, "ca-certificates.crt"));
  const lines = [
    "FROM scratch",
    "ADD debian.tar /",
    "COPY node /usr/local/bin/node",
    "COPY npm /usr/local/lib/node_modules/npm",
    "RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm",
    `COPY ca-certificates.crt /${authorities}`,
    `ENV NODE_EXTRA_CA_CERTS=/${authorities}`,
  ];
  writeFileSync(join(folder, "Dockerfile"), lines.join("\n"));
}

/** Starts the container's program on free ports of this machine, until it is ready, and stops it. */
async function startIn(container: string): Promise<void> {
  const listeners = ["API", "EDGE", "EDGE_TLS", "DNS"];
  const ports = await Promise.all(listeners.map(freePort));
  const settings = [
    ...listeners.map((name, i) => `SELVEDGE_${name}_LISTEN=127.0.0.1:${ports[i]}`),
    "SELVEDGE_READY_FILE=/tmp/ready.json",
  ].flatMap((each) => ["--env", each]);
  const begunMs = performance.now();
  const child = spawn("buildah", [...storage, "run", ...settings, container, "--", "selvedge", "serve"], {
    env,
    stdio: "inherit",
  });
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${ports[0]}/readyz`).catch(() => undefined);
    if (answer?.status === 200) break;
    if (child.exitCode !== null) throw new Error(`the container ended with ${child.exitCode}`);
    if (performance.now() - begunMs > 60_000) throw new Error("the container is not ready after 60 s");
    await delay(50);
  }
  process.stdout.write(`ready after ${Math.round(performance.now() - begunMs)} ms\n`);
  const ready = readFileSync(join(buildah("mount", container), "tmp/ready.json"), "utf8");
  buildah("umount", container);
  const { pid } = JSON.parse(ready) as { pid: number }; // chroot isolation shares the machine's process ids
  if (statSync(`/proc/${pid}`).uid === 0) throw new Error("the program runs as root");
  process.kill(pid, "SIGTERM");
  if ((await exited) !== 0) throw new Error("the container did not stop cleanly");
}
