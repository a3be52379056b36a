/** Compares queries per second and CPU per query of one thread with NSD, Knot and a minimal Node server. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  family,
  isInstalled,
  queriesPerSecond,
  questions,
  records,
  startKnot,
  startNsd,
  zone,
  type NameServerUnderLoad,
} from "./dns-lib.ts";
import { measureVisibility } from "./dns-visibility.ts";
import { api, benchToken, startPeer, startSelvedge } from "./lib/child.ts";
import {
  atLeast,
  atMost,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  printTable,
  type Goal,
} from "./lib/measure.ts";

const rounds = 7;
const roundSeconds = 2;
const folder = mkdtempSync(join(tmpdir(), "selvedge-dns-"));
const mixed = join(folder, "mixed");
const positive = join(folder, "positive");
writeFileSync(mixed, questions());
writeFileSync(positive, Array.from({ length: 700 }, (_, index) => `a${index}.${zone} A\n`).join(""));

async function ours(
  name: string,
  ...settings: string[]
): Promise<NameServerUnderLoad & { sign(): Promise<void> }> {
  const selvedge = await startSelvedge(settings);
  const { ready, pid } = selvedge;
  const { id } = await api<{ id: string }>(ready, "POST", "/zones", { name: zone });
  const form = new FormData();
  form.append("file", `${records.map((record) => record.toSpliced(1, 0, "300 IN").join(" ")).join("\n")}\n`);
  const imported = await fetch(`${ready.api}/zones/${id}/dns_records/import`, {
    method: "POST",
    headers: { authorization: `Bearer ${benchToken}` },
    body: form,
  });
  if (!imported.ok) throw new Error(await imported.text());
  return {
    name,
    port: Number(ready.dns.split(":").at(-1)),
    pid,
    stop: () => selvedge.stop(),
    sign: async () => void (await api(ready, "PATCH", `/zones/${id}/dnssec`, { status: "active" })),
  };
}

async function plain(): Promise<NameServerUnderLoad> {
  const file = join(folder, "plain.json");
  const bare = records.map(([name, type, data]) => ({
    name: `${name}.${zone}`,
    type,
    data: plainData(type, data),
  }));
  writeFileSync(file, JSON.stringify({ zone, records: bare }));
  const peer = await startPeer("plain-dns.ts", file);
  return { name: "dns-packet", port: peer.port, pid: peer.pid, stop: () => peer.stop() };
}

function plainData(type: string, data: string): unknown {
  if (type === "TXT") return data.slice(1, -1);
  if (type === "CNAME") return data.slice(0, -1);
  if (type !== "MX") return data;
  const [preference, exchange] = data.split(" ");
  return { preference: Number(preference), exchange: exchange!.slice(0, -1) };
}

interface Load {
  what: string;
  server: NameServerUnderLoad;
  file: string;
  options?: readonly string[];
}

/** Runs the loads in turn, in many rounds, so that other load of the machine affects all of them alike. */
async function measure(
  loads: readonly Load[],
): Promise<Record<string, { perSecond: number[]; cpu: number[] }>> {
  const figures = Object.fromEntries(
    loads.map(({ what }) => [what, { perSecond: [] as number[], cpu: [] as number[] }]),
  );
  for (let round = -1; round < rounds; round++) {
    for (const { what, server, file, options } of round % 2 === 0 ? loads : loads.toReversed()) {
      const pids = family(server.pid);
      const used = (): number => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
      const before = used();
      const { perSecond, completed, lost } = await queriesPerSecond(server.port, file, roundSeconds, options);
      if (round < 0) continue; // warm-up
      if (lost > completed / 1000)
        process.stderr.write(`${what}: ${lost} of ${completed + lost} queries were lost\n`);
      figures[what]!.perSecond.push(perSecond);
      figures[what]!.cpu.push((used() - before) / completed);
    }
  }
  printTable(
    ["", "queries per second", "best", "CPU µs each"],
    Object.entries(figures).map(([what, { perSecond, cpu }]) => [
      what,
      median(perSecond),
      Math.max(...perSecond),
      median(cpu),
    ]),
  );
  return figures;
}

const goals: Goal[] = [];
if (isInstalled("dnsperf")) {
  const single = await ours("Selvedge");
  const batched = await ours("Selvedge, batched", "--dns-udp", "batched");
  const servers = [
    ...(isInstalled("nsd") ? [await startNsd()] : []),
    ...(isInstalled("knotd") ? [await startKnot()] : []),
    single,
    batched,
    await plain(),
  ];
  const figures = await measure(servers.map((server) => ({ what: server.name, server, file: mixed })));
  const compare = (one: string, other: string, bounds: { perSecond: number; cpu: number }): void => {
    const [a, b] = [figures[one]!, figures[other]];
    if (b === undefined) return;
    goals.push(
      atLeast(
        `queries per second, ${one} / ${other}`,
        pairedRatio(a.perSecond, b.perSecond),
        bounds.perSecond,
      ),
      atMost(`CPU per query, ${one} / ${other}`, pairedRatio(a.cpu, b.cpu), bounds.cpu),
    );
  };
  compare(single.name, "nsd", { perSecond: 0.55, cpu: 2.3 });
  compare(batched.name, "nsd", { perSecond: 0.9, cpu: 1.15 });
  compare(single.name, "dns-packet", { perSecond: 1, cpu: 1 });

  await single.sign();
  const signed = await measure([
    { what: "positive, unsigned", server: single, file: positive },
    { what: "positive, signed", server: single, file: positive, options: ["-D"] },
  ]);
  const [one, other] = [signed["positive, signed"]!, signed["positive, unsigned"]!];
  goals.push(
    atLeast("queries per second, signed / unsigned", pairedRatio(one.perSecond, other.perSecond), 0.8),
  );
  for (const server of servers) await server.stop();
} else process.stdout.write("dnsperf is not installed (Debian package dnsperf): speed is not measured.\n");

goals.push(...(await measureVisibility()));
printGoals(goals);
