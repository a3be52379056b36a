import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startPeer } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import { atLeast, atMost, cpuMicroseconds, median, pairedRatio, reported, type Goal } from "./lib/measure.ts";
import type { Section, Stage } from "./images-cold.ts";
import { family, getWhole } from "./images-lib.ts";

/** Compares cached pictures with plain node:http serving the same bytes and headers. */

interface Target {
  origin: string;
  path: string;
  pids: number[];
  headers?: Record<string, string>;
  status?: number;
}
async function compare(
  targets: Record<string, Target>,
  { rounds, count, connections }: { rounds: number; count: number; connections: number },
): Promise<Record<string, { cpu: number[]; perSecond: number[] }>> {
  const found = Object.fromEntries(
    Object.keys(targets).map((name) => [name, { cpu: [] as number[], perSecond: [] as number[] }]),
  );
  for (let round = -2; round < rounds; round++) {
    const order = Object.entries(targets);
    for (const [name, { origin, path, pids, headers = {}, status }] of round % 2 === 0
      ? order
      : order.toReversed()) {
      const used = (): number => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
      const before = used();
      const seconds = await load(
        origin,
        count,
        connections,
        () => ({ method: "GET", path, headers }),
        status,
      );
      if (round < 0) continue;
      found[name]!.cpu.push((used() - before) / count);
      found[name]!.perSecond.push(count / seconds);
    }
  }
  return found;
}

const split = (url: string): { origin: string; path: string } => {
  const { origin, pathname } = new URL(url);
  return { origin, path: pathname };
};

export async function hitSection({ pid, url }: Stage): Promise<Section> {
  const rows: Section["rows"] = [];
  const goals: Goal[] = [];
  const folder = mkdtempSync(join(tmpdir(), "selvedge-hits-"));
  for (const [size, options] of [
    ["small", "w=160,f=webp"],
    ["large", "w=1350,q=85,f=webp"], // 123 KB
  ] as const) {
    const first = await getWhole(`${url}/${options}`);
    const file = join(folder, size);
    writeFileSync(file, first.bytes);
    const again = await getWhole(`${url}/${options}`);
    const headers = Object.fromEntries(
      Object.entries(again.headers).filter(
        ([name]) => !["date", "connection", "keep-alive", "content-length"].includes(name),
      ),
    );
    const plain = await startPeer("bare-static.ts", file, JSON.stringify(headers));
    const nginx = await startNginx(folder, size, headers as Record<string, string>);
    const target = split(`${url}/${options}`);
    const found = await compare(
      {
        selvedge: { ...target, pids: [pid] },
        "selvedge, 304": {
          ...target,
          pids: [pid],
          headers: { "if-none-match": String(again.headers["etag"]) },
          status: 304,
        },
        "node:http": { origin: `http://127.0.0.1:${plain.port}`, path: "/memory", pids: [plain.pid] },
        ...(nginx === undefined ? {} : { nginx }),
      },
      { rounds: 9, count: 3000, connections: 8 },
    );
    for (const [side, { cpu, perSecond }] of Object.entries(found))
      rows.push([`${(first.bytes.length / 1024).toFixed(1)} KB, ${side}`, median(cpu), median(perSecond)]);
    const ours = found["selvedge"]!;
    const base = found["node:http"]!;
    goals.push(
      atMost(`E5 CPU of a memory hit, ${size}, Selvedge / node:http`, pairedRatio(ours.cpu, base.cpu), 1.3),
      atLeast(
        `E5 hits a second, ${size}, Selvedge / node:http`,
        pairedRatio(ours.perSecond, base.perSecond),
        0.8,
      ),
      atMost(`E6 CPU, ${size}, 304 / a memory hit`, pairedRatio(found["selvedge, 304"]!.cpu, ours.cpu), 0.9),
    );
    if (nginx !== undefined) {
      const bound = size === "small" ? 3.2 : 1.4;
      goals.push(
        atMost(
          `E8 CPU of a memory hit, ${size}, Selvedge / nginx`,
          pairedRatio(ours.cpu, found["nginx"]!.cpu),
          bound,
        ),
        reported(`E8 CPU, ${size}, node:http / nginx`, pairedRatio(base.cpu, found["nginx"]!.cpu)),
      );
      nginx.stop();
    } else process.stdout.write("nginx is not installed (Debian package nginx-light): not compared.\n");
    await plain.stop();
  }
  goals.push(...(await diskGoals(pid, url, folder, rows)));
  rmSync(folder, { recursive: true, force: true });
  return { headings: ["", "CPU µs each", "per second"], rows, goals };
}

/** Requests more results in turn than fit in memory, so that they come from disk. */
async function diskGoals(pid: number, url: string, folder: string, rows: Section["rows"]): Promise<Goal[]> {
  // Results above 256 KB are not cached in memory.
  const options = "w=1400,q=92,f=webp";
  const first = await getWhole(`${url}/${options}`);
  const again = await getWhole(`${url}/${options}`);
  const file = join(folder, "disk");
  writeFileSync(file, first.bytes);
  const headers = { etag: String(again.headers["etag"]), "content-type": "image/webp" };
  const plain = await startPeer("bare-static.ts", file, JSON.stringify(headers));
  const found = await compare(
    {
      selvedge: { ...split(`${url}/${options}`), pids: [pid] },
      stream: { origin: `http://127.0.0.1:${plain.port}`, path: "/stream", pids: [plain.pid] },
    },
    { rounds: 7, count: 400, connections: 8 },
  );
  for (const [side, { cpu, perSecond }] of Object.entries(found))
    rows.push([
      `${(first.bytes.length / 1024).toFixed(1)} KB from disk, ${side}`,
      median(cpu),
      median(perSecond),
    ]);
  await plain.stop();
  return [
    atMost(
      "E7 CPU of a hit on disk / createReadStream",
      pairedRatio(found["selvedge"]!.cpu, found["stream"]!.cpu),
      0.4,
    ),
  ];
}

async function startNginx(
  folder: string,
  name: string,
  headers: Record<string, string>,
): Promise<(Target & { stop(): void }) | undefined> {
  if (spawnSync("nginx", ["-v"]).status !== 0) return undefined;
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  const own = ["etag", "last-modified", "content-type", "accept-ranges"];
  const added = Object.entries(headers)
    .filter(([key]) => !own.includes(key))
    .map(([key, value]) => `add_header ${key} ${JSON.stringify(value)};`)
    .join("\n");
  writeFileSync(
    join(folder, `${name}.conf`),
    `daemon off; worker_processes 1; pid ${folder}/${name}.pid; error_log ${folder}/${name}.log;
user root; events { worker_connections 1024; }
http { access_log off; sendfile on; tcp_nopush on; open_file_cache max=100; default_type image/webp; client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  server { listen 127.0.0.1:${port}; root ${folder}; ${added} } }
`,
  );
  const child = spawn("nginx", ["-c", join(folder, `${name}.conf`), "-p", folder], { stdio: "ignore" });
  await delay(500);
  if (child.exitCode !== null) {
    process.stdout.write(`nginx did not start: ${readFileSync(join(folder, `${name}.log`), "utf8")}\n`);
    return undefined;
  }
  return {
    origin: `http://127.0.0.1:${port}`,
    path: `/${name}`,
    pids: family(child.pid!),
    stop: () => void child.kill(),
  };
}
