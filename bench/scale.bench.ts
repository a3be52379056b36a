import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ownerRole } from "../src/control/accounts/roles.ts";
import { EdgeSnapshot, EdgeZone } from "../src/edge/configuration/snapshot.ts";
import { openStorage } from "../src/platform/storage/storage.ts";
import { newId } from "../src/platform/util/ids.ts";
import { benchToken, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import {
  atMost,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  residentMegabytes,
  reported,
} from "./lib/measure.ts";

/** 100,000 records over 1,000 zones: the time of a start, its memory, and the cost of a look-up. */
const zoneCount = 1000;
const recordsPerZone = 100;

/** Fills a database that has an owner; returns the zones' ids. */
async function fill(path: string, zones = zoneCount): Promise<string[]> {
  const ids: string[] = [];
  const storage = await openStorage(`sqlite:${path}`);
  const now = Date.now();
  const accountId = newId();
  await storage.write(async (trx) => {
    await trx
      .insertInto("accounts")
      .values({ id: accountId, name: "a", type: "standard", settings: "{}", has_billing: 1, created_on: now })
      .execute();
    const owner = {
      id: newId(),
      email: "owner@selvedge.localhost",
      api_key_hash: null,
      invited: 0 as const,
      created_on: now,
      modified_on: now,
    };
    const nobody = { first_name: null, last_name: null, telephone: null, country: null, zipcode: null };
    await trx
      .insertInto("users")
      .values({ ...owner, ...nobody })
      .execute();
    await trx
      .insertInto("memberships")
      .values({
        id: newId(),
        account_id: accountId,
        user_id: owner.id,
        status: "accepted",
        roles: JSON.stringify([ownerRole.name]),
        created_on: now,
      })
      .execute();
    for (let z = 0; z < zones; z++) {
      const id = newId();
      ids.push(id);
      const name = `zone-${z}.example`;
      await trx
        .insertInto("zones")
        .values({
          id,
          account_id: accountId,
          name,
          type: "full",
          status: "active",
          paused: 0,
          plan: "enterprise",
          name_servers: "[]",
          vanity_name_servers: "[]",
          verification_key: null,
          smart_routing: "off",
          smart_routing_modified_on: null,
          serial: 1,
          record_count: recordsPerZone,
          created_on: now,
          modified_on: now,
          activated_on: now,
          checked_on: null,
        })
        .execute();
      const rows = Array.from({ length: recordsPerZone }, (_, r) => ({
        id: newId(),
        zone_id: id,
        type: "A",
        name: `host-${r}.${name}`,
        content: "192.0.2.1",
        data: null,
        priority: null,
        ttl: 1,
        proxied: 1 as const,
        settings: "{}",
        comment: null,
        tags: "[]",
        created_on: now,
        modified_on: now,
        comment_modified_on: null,
        tags_modified_on: null,
      }));
      await trx.insertInto("dns_records").values(rows).execute();
    }
  });
  await storage.close();
  return ids;
}

function snapshot(zones: number): EdgeSnapshot {
  const made = new EdgeSnapshot();
  for (let z = 0; z < zones; z++) {
    const zone = new EdgeZone(newId(), `zone-${z}.example`, false);
    for (let r = 0; r < recordsPerZone; r++) {
      zone.setHost(`host-${r}.${zone.name}`, {
        isProxied: true,
        targets: [{ type: "A", content: "192.0.2.1" }],
      });
    }
    made.add(zone);
  }
  return made;
}

/** Nanoseconds per look-up of hosts in turn, as freshly parsed strings. */
function lookUp(from: EdgeSnapshot, zones: number): number {
  const count = 200_000;
  const hosts = Array.from(
    { length: 1024 },
    (_, i) => `host-${(i * 7) % recordsPerZone}.zone-${(i * 13) % zones}.example`,
  );
  const start = process.hrtime.bigint();
  let found = 0;
  for (let i = 0; i < count; i++) {
    const host = hosts[i & 1023]!;
    if (from.findZone(host)?.resolve(host) !== undefined) found += 1;
  }
  const nanoseconds = Number(process.hrtime.bigint() - start) / count;
  if (found !== count) throw new Error("a host was not found");
  return nanoseconds;
}

const empty = await startSelvedge();
const emptyMegabytes = residentMegabytes(empty.pid);
await empty.stop();

const folder = join(process.cwd(), "data", `bench-${process.pid}`);
mkdirSync(folder, { recursive: true });
await fill(join(folder, "selvedge.db"));
const start = performance.now();
const full = await startSelvedge(["--database-url", `sqlite:${join(folder, "selvedge.db")}`]);
const seconds = (performance.now() - start) / 1000;
const megabytes = residentMegabytes(full.pid);
const cpuSeconds = cpuMicroseconds(full.pid) / 1e6;
await full.stop();

const [small, large] = [snapshot(10), snapshot(zoneCount)];
const times: { small: number[]; large: number[] } = { small: [], large: [] };
for (let round = 0; round < 15; round++) {
  times.small.push(lookUp(small, 10));
  times.large.push(lookUp(large, zoneCount));
}
const requests = await compareRequests();
rmSync(folder, { recursive: true, force: true });
printGoals([
  atMost("start to ready with 100,000 records over 1,000 zones, s", seconds, 3),
  reported("CPU of that start, s", cpuSeconds),
  reported("memory, empty, MB", emptyMegabytes),
  reported("memory, 100,000 records, MB", megabytes),
  atMost("CPU of a request by host at the edge, 1,000 zones / 10 zones", requests.edge, 1.5),
  atMost("CPU of a record by name in the API, 1,000 zones / 10 zones", requests.api, 1.5),
  reported("the look-up alone, with 1,000 zones, ns", median(times.large)),
  reported(
    "the look-up alone, 1,000 zones / 10 zones (processor caches)",
    pairedRatio(times.large.slice(3), times.small.slice(3)),
  ),
]);

/**
 * The same requests to a platform with 10 zones and one with 1,000. At the edge the origins are private and refused, so
 * that only finding the record is measured, not a connection.
 */
async function compareRequests(): Promise<{ edge: number; api: number }> {
  const count = 3000;
  const sides = [];
  for (const zones of [10, zoneCount]) {
    const path = join(folder, `selvedge-${zones}.db`);
    const ids = await fill(path, zones);
    const server = await startSelvedge(["--database-url", `sqlite:${path}`, "--private-networks", "deny"]);
    sides.push({ server, zones, ids, edge: [] as number[], api: [] as number[] });
  }
  for (let round = -2; round < 7; round++) {
    for (const { server, zones, ids, edge, api } of sides) {
      const used = async (work: Promise<unknown>): Promise<number> => {
        const before = cpuMicroseconds(server.pid);
        await work;
        return (cpuMicroseconds(server.pid) - before) / count;
      };
      const hostOf = (i: number): [zone: number, host: string] => {
        const zone = (i * 13) % zones;
        return [zone, `host-${(i * 7) % recordsPerZone}.zone-${zone}.example`];
      };
      const visits = load(
        server.ready.edge,
        count,
        8,
        (i) => ({ method: "GET", path: "/", headers: { host: hostOf(i)[1] } }),
        403,
      );
      const edgeCpu = await used(visits);
      const authorization = `Bearer ${benchToken}`;
      const { origin, pathname } = new URL(server.ready.api);
      const reads = load(origin, count, 8, (i) => {
        const [zone, host] = hostOf(i);
        return {
          method: "GET",
          path: `${pathname}/zones/${ids[zone]}/dns_records?name=${host}`,
          headers: { authorization },
        };
      });
      const apiCpu = await used(reads);
      if (round < 0) continue; // warm-up
      edge.push(edgeCpu);
      api.push(apiCpu);
    }
  }
  for (const { server } of sides) await server.stop();
  const [few, many] = sides as [(typeof sides)[0], (typeof sides)[0]];
  return { edge: pairedRatio(many.edge, few.edge), api: pairedRatio(many.api, few.api) };
}
