import { startPeer, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import { proxiedZone } from "./lib/proxied-zone.ts";
import {
  atMost,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  printTable,
  reported,
} from "./lib/measure.ts";

/** Compares CPU time of a request with a body of 1 KB, in zones with and without rules that read bodies. */
const rounds = 15;
const count = 3000;
const body = `a=${"x".repeat(1022)}`;

const origin = await startPeer("origin.ts");
const without = await startSelvedge();
const within = await startSelvedge();
for (const { ready } of [without, within]) await proxiedZone(ready, "plain.example", origin.port);
await proxiedZone(without.ready, "second.example", origin.port);
await proxiedZone(
  within.ready,
  "second.example",
  origin.port,
  'not http.request.body.raw contains "nowhere"',
);

const sides = {
  "no rule asks for bodies": { side: without, host: "www.plain.example" },
  "rules of another zone ask": { side: within, host: "www.plain.example" },
  // Both get the same number of requests, because V8 optimises a process that serves more.
  "a second zone, where no rule asks": { side: without, host: "www.second.example" },
  "a rule of this zone asks": { side: within, host: "www.second.example" },
};
type Name = keyof typeof sides;
const names = Object.keys(sides) as Name[];
const cpu: Record<Name, number[]> = {
  "no rule asks for bodies": [],
  "rules of another zone ask": [],
  "a second zone, where no rule asks": [],
  "a rule of this zone asks": [],
};
for (let round = -2; round < rounds; round++)
  for (const name of round % 2 === 0 ? names : names.toReversed()) {
    const { side, host } = sides[name];
    const headers = { host, "content-type": "application/x-www-form-urlencoded" };
    const before = cpuMicroseconds(side.pid);
    await load(side.ready.edge, count, 16, () => ({ method: "POST", path: "/2", headers, body }));
    if (round >= 0) cpu[name].push((cpuMicroseconds(side.pid) - before) / count);
  }
printTable(
  ["", "CPU µs each"],
  names.map((name) => [name, median(cpu[name])]),
);
printGoals([
  atMost(
    "CPU of a zone whose rules do not ask / of an edge where none asks",
    pairedRatio(cpu["rules of another zone ask"], cpu["no rule asks for bodies"]),
    1.03,
  ),
  reported(
    "CPU of a zone with a rule that asks / of one without",
    pairedRatio(cpu["a rule of this zone asks"], cpu["a second zone, where no rule asks"]),
  ),
]);
for (const each of [without, within, origin]) await each.stop();
