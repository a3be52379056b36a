/** NSD as a secondary follows changes that are made at once, by notifications and IXFR; at the end it has what we have. */
import { execFile } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { startTestServer } from "../helpers/server.ts";
import { dnsPort } from "../name-server/ask.ts";
import { freePort } from "../helpers/free-port.ts";
import { startNsd } from "../name-server/nsd.ts";
import { Random } from "../name-server/random.ts";

const run = promisify(execFile);
const zone = "followed.example";
const changes = Number(process.argv[2] ?? 500);
const atOnce = 8;
const random = new Random(Number(process.argv[3] ?? Date.now() % 1_000_000));

const server = await startTestServer();
const { account_id } = server.ready;
const { zones, dns } = server.client;
const { id: zone_id } = await zones.create({ account: { id: account_id }, name: zone });
await zones.activationCheck.trigger({ zone_id });
const port = await freePort();
const peer = { account_id, name: "nsd", ip: "127.0.0.1", port };
const { id: peerId } = await dns.zoneTransfers.peers.create(peer);
await dns.zoneTransfers.outgoing.create({ zone_id, name: zone, peers: [peerId] });
await dns.zoneTransfers.outgoing.enable({ zone_id, body: {} } as never);
const nsd = await startNsd(
  [
    {
      name: zone,
      extra: `  request-xfr: 127.0.0.1@${dnsPort(server)} NOKEY\n  allow-notify: 127.0.0.1 NOKEY\n  provide-xfr: 127.0.0.1 NOKEY`,
    },
  ],
  "",
  port,
);

const made: string[] = [];
async function changeOne(): Promise<void> {
  const content = `192.0.2.${random.below(256)}`;
  const kind = random.below(3);
  const id = made.length === 0 ? undefined : made[random.below(made.length)];
  if (kind === 0 || id === undefined) {
    const record = { type: "A", name: `n${random.below(10_000)}`, content, ttl: 60 } as const;
    const { id: added } = await dns.records.create({ zone_id, ...record });
    made.push(added);
  } else if (kind === 1) await dns.records.edit(id, { zone_id, content } as never);
  else {
    made.splice(made.indexOf(id), 1);
    await dns.records.delete(id, { zone_id });
  }
}
let left = changes;
let refused = 0;
const worker = async (): Promise<void> => {
  // Two may want the same record at once; then one of them is too late.
  while (left-- > 0) await changeOne().catch(() => refused++);
};
await Promise.all(Array.from({ length: atOnce }, worker));

async function recordsAt(place: number): Promise<string[]> {
  const { stdout } = await run("kdig", [
    "@127.0.0.1",
    "-p",
    String(place),
    "+noall",
    "+answer",
    zone,
    "AXFR",
  ]);
  const lines = stdout.split("\n").filter((line) => /\sIN\s/.test(line));
  return [...new Set(lines.map((line) => line.replace(/\s+/g, " ")))].toSorted();
}
const ours = await recordsAt(dnsPort(server));
const started = performance.now();
let theirs: string[] = [];
while (performance.now() - started < 30_000) {
  theirs = await recordsAt(port).catch(() => []);
  if (theirs.join() === ours.join()) break;
  await pause(100);
}
const isSame = theirs.join() === ours.join();
const missing = ours.filter((record) => !theirs.includes(record));
const extra = theirs.filter((record) => !ours.includes(record));
console.log(JSON.stringify({ changes, refused, records: ours.length, isSame, missing, extra }, null, 2));
await nsd.close();
await server.close(1000);
process.exit(isSame ? 0 : 1);
