import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { temporaryFolder } from "../helpers/process.ts";
import { freePort } from "../helpers/free-port.ts";

export const has = (tool: string): boolean => spawnSync(tool, ["-v"]).error === undefined;
/** A test is skipped if its tool is missing, unless the environment says that all tools are installed. */
export const isMissing = (tool: string): boolean => process.env["CI_TOOLS"] !== "1" && !has(tool);

export interface Nsd {
  port: number;
  close(): Promise<void>;
}

/** NSD with our zones, as a reference or a secondary. `extra` is added to its configuration. */
export async function startNsd(
  zones: readonly { name: string; file?: string; extra?: string }[],
  extra = "",
  atPort?: number,
): Promise<Nsd> {
  const folder = temporaryFolder();
  const port = atPort ?? (await freePort());
  const lines = [
    "server:",
    `  ip-address: 127.0.0.1@${port}`,
    "  server-count: 1",
    '  database: ""',
    `  zonesdir: "${folder}"`,
    `  pidfile: "${folder}/nsd.pid"`,
    `  xfrdfile: "${folder}/xfrd.state"`,
    `  zonelistfile: "${folder}/zone.list"`,
    `  xfrdir: "${folder}"`,
    '  username: ""',
    '  chroot: ""',
    "  verbosity: 1",
    "  minimal-responses: yes",
    "  rrl-ratelimit: 0",
    "remote-control:",
    "  control-enable: no",
    extra,
  ];
  for (const zone of zones) {
    if (zone.file !== undefined) writeFileSync(join(folder, `${zone.name}.zone`), zone.file);
    lines.push("zone:", `  name: "${zone.name}"`, `  zonefile: "${zone.name}.zone"`, zone.extra ?? "");
  }
  writeFileSync(join(folder, "nsd.conf"), `${lines.join("\n")}\n`);
  const child = spawn("nsd", ["-d", "-c", join(folder, "nsd.conf")], { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  child.stdout.on("data", (chunk: Buffer) => (log += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (log += chunk.toString()));
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`nsd ended: ${log}`);
    await pause(20);
  }
  return {
    port,
    async close() {
      child.kill();
      await exited;
    },
  };
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
