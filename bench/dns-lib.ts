import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../test/helpers/free-port.ts";

export interface NameServerUnderLoad {
  name: string;
  port: number;
  pid: number;
  stop(): Promise<void>;
}

export const zone = "bench.example";
export const isInstalled = (tool: string): boolean => spawnSync(tool, ["-h"]).error === undefined;

/** A zone of a thousand names, as [name, type, data]. */
export const records: [name: string, type: string, data: string][] = [
  ...Array.from({ length: 700 }, (_, index): [string, string, string] => [
    `a${index}`,
    "A",
    `192.0.2.${index % 250}`,
  ]),
  ...Array.from({ length: 100 }, (_, index): [string, string, string] => [
    `t${index}`,
    "TXT",
    `"text ${index}"`,
  ]),
  ...Array.from({ length: 100 }, (_, index): [string, string, string] => [
    `c${index}`,
    "CNAME",
    `a${index}.${zone}.`,
  ]),
  ...Array.from({ length: 50 }, (_, index): [string, string, string] => [
    `m${index}`,
    "MX",
    `5 a${index}.${zone}.`,
  ]),
  ...Array.from({ length: 50 }, (_, index): [string, string, string] => [
    `*.w${index}`,
    "A",
    `192.0.2.${index}`,
  ]),
];

export const zoneFile = `$ORIGIN ${zone}.
@ 3600 IN SOA ns1 dns 1 10000 2400 604800 1800
@ 3600 IN NS ns1
ns1 300 IN A 192.0.2.1
${records.map(([name, type, data]) => `${name} 300 IN ${type} ${data}`).join("\n")}
`;

/** 70 % A, 8 % TXT, 6 % CNAME, 4 % wildcards, 8 % names that are missing, 2 % MX, 2 % types that are missing. */
export function questions(): string {
  const kinds: [share: number, make: (index: number) => string][] = [
    [70, (index) => `a${index % 700} A`],
    [8, (index) => `t${index % 100} TXT`],
    [6, (index) => `c${index % 100} A`],
    [4, (index) => `x${index % 1000}.w${index % 50} A`],
    [8, (index) => `none${index % 5000} A`],
    [2, (index) => `m${index % 50} MX`],
    [2, (index) => `a${index % 700} AAAA`],
  ];
  const deck = kinds.flatMap(([share, make]) => Array.from({ length: share }, () => make));
  return Array.from({ length: 20_000 }, (_, index) => {
    const [name, type] = deck[(index * 37) % 100]!(index * 7).split(" ");
    return `${name}.${zone} ${type}\n`;
  }).join("");
}

/** Queries per second answered by the server on a port, measured by dnsperf. */
export async function queriesPerSecond(
  port: number,
  file: string,
  seconds: number,
  options: readonly string[] = [],
): Promise<{ perSecond: number; completed: number; lost: number }> {
  const load = [
    "-s",
    "127.0.0.1",
    "-p",
    String(port),
    "-d",
    file,
    "-l",
    String(seconds),
    "-c",
    "8",
    "-q",
    "200",
  ];
  const child = spawn("dnsperf", [...load, "-e", ...options], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await new Promise((resolve) => child.once("close", resolve));
  const figure = (label: string): number => Number(new RegExp(`${label}:\\s+([\\d.]+)`).exec(output)?.[1]);
  return {
    perSecond: figure("Queries per second"),
    completed: figure("Queries completed"),
    lost: figure("Queries lost"),
  };
}

export async function startNsd(): Promise<NameServerUnderLoad> {
  return start("nsd", (folder, port) => [
    "nsd",
    `server:
  ip-address: 127.0.0.1@${port}
  server-count: 1
  database: ""
  zonesdir: "${folder}"
  pidfile: "${folder}/pid"
  xfrdfile: "${folder}/xfrd"
  zonelistfile: "${folder}/list"
  xfrdir: "${folder}"
  username: ""
  chroot: ""
  rrl-ratelimit: 0
remote-control:
  control-enable: no
zone:
  name: "${zone}"
  zonefile: "zone"
`,
    ["-d", "-c"],
  ]);
}

export async function startKnot(): Promise<NameServerUnderLoad> {
  return start("Knot", (folder, port) => [
    "knotd",
    `server:
    listen: 127.0.0.1@${port}
    rundir: "${folder}"
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: "${folder}"
zone:
  - domain: ${zone}
    storage: "${folder}"
    file: zone
`,
    ["-c"],
  ]);
}

async function start(
  name: string,
  configure: (folder: string, port: number) => [command: string, configuration: string, options: string[]],
): Promise<NameServerUnderLoad> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-dns-"));
  const port = await freePort();
  const [command, configuration, options] = configure(folder, port);
  writeFileSync(join(folder, "zone"), zoneFile);
  writeFileSync(join(folder, "conf"), configuration);
  const child = spawn(command, [...options, join(folder, "conf")], { stdio: "ignore" });
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`${command} ended`);
    await delay(20);
  }
  return {
    name,
    port,
    pid: child.pid!,
    async stop() {
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill();
      await exited;
    },
  };
}

/** The ids of a process and all its descendants. */
export function family(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return [pid, ...(children === "" ? [] : children.split(" ").flatMap((child) => family(Number(child))))];
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
