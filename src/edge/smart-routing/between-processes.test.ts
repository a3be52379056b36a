import { pino } from "pino";
import { expect, it, onTestFinished } from "vitest";
import { ProcessNotes } from "../../platform/processes/notes.ts";
import type { OwnProcess } from "../../platform/processes/own-process.ts";
import { edgeDefaults } from "../http/settings.ts";
import { AddressPolicy } from "../origin/address-policy.ts";
import { Origins } from "../origin/origins.ts";
import { Analytics } from "./analytics.ts";
import { shareObservations } from "./between-processes.ts";
import { Relays } from "./relays.ts";
import { SmartRouting } from "./routing.ts";

interface Process {
  routing: SmartRouting;
  analytics: Analytics;
  notes: ProcessNotes;
  /** Sends a request, which fails at addresses without a time. Rejects if it fails at all of them. */
  send: (answersMs: Readonly<Record<string, number>>) => Promise<void>;
}

const addresses = ["192.0.2.1", "192.0.2.2"];

function newProcess(role: "main" | "edge"): Process {
  const origins = new Origins(edgeDefaults, new AddressPolicy("all"));
  const relays = new Relays([], "", edgeDefaults, undefined);
  onTestFinished(async () => {
    origins.close();
    await relays.close();
  });
  const [analytics, notes] = [new Analytics(), new ProcessNotes()];
  const routing = new SmartRouting(origins, relays, analytics, pino({ enabled: false }));
  shareObservations(routing, analytics, notes, { role } as OwnProcess, (id) => id === "zone");
  return {
    routing,
    analytics,
    notes,
    async send(answersMs) {
      const route = routing.route("zone", addresses, 80, undefined);
      const attempt: Parameters<typeof route.send>[0] = async ({ address }, race) => {
        const ms = answersMs[address];
        if (ms === undefined) throw new Error("no answer");
        await new Promise((resolve) => setTimeout(resolve, ms));
        race.claim(200);
      };
      await route.send(attempt, true, () => true);
    },
  };
}

/** Main and two edge processes. */
function newNode(): { main: Process; edges: [Process, Process] } {
  const main = newProcess("main");
  const edges: [Process, Process] = [newProcess("edge"), newProcess("edge")];
  const told = <T>(note: T): T => structuredClone(note);
  for (const edge of edges)
    edge.notes.line = {
      waitingBytes: () => 0,
      send: async (note) =>
        main.notes.take(told(note), () => {
          for (const other of edges) if (other !== edge) void other.notes.take(told(note));
        }),
    };
  main.notes.line = {
    waitingBytes: () => 0,
    send: async (note) => {
      for (const edge of edges) await edge.notes.take(told(note));
    },
  };
  return { main, edges };
}

it("every process learns from the requests of each, and main has the results of all", async () => {
  const { main, edges } = newNode();
  const requests = 15;
  const speeds = { "192.0.2.1": 30, "192.0.2.2": 1 };
  for (const { send } of edges) await Promise.all(Array.from({ length: requests }, async () => send(speeds)));
  const results = () => main.analytics.zone("zone").recent();
  await expect.poll(() => results().smart.count + results().direct.count).toBe(2 * requests);
  for (const { analytics } of [main, ...edges]) {
    const paths = analytics.pathsOf("zone");
    expect(paths.map(({ path, isCurrent }) => [path, isCurrent])).toEqual([
      ["192.0.2.1", false],
      ["192.0.2.2", true],
    ]);
    expect(paths.reduce((sum, each) => sum + each.requests, 0)).toBeGreaterThanOrEqual(2 * requests);
  }
});

it("a path that one process excludes is excluded in all at once", async () => {
  const { main, edges } = newNode();
  const [first, second] = edges;
  const onlySecond = { "192.0.2.2": 0 };
  const excluded = ({ routing }: Process): string[] => routing.setAside().map(({ path }) => path.address);
  while (excluded(first).length === 0) await first.send(onlySecond);
  expect([excluded(first), excluded(main), excluded(second)]).toEqual([
    ["192.0.2.1"],
    ["192.0.2.1"],
    ["192.0.2.1"],
  ]);
});

it("an edge process tells the results of zones with new requests only", async () => {
  const analytics = new Analytics();
  for (let zone = 0; zone < 1000; zone++) analytics.zone(String(zone)).add("smart", 1);
  expect(analytics.take().length).toBe(1000);
  analytics.zone("7").failed();
  expect(analytics.take()).toMatchObject([["7", { failures: 1 }]]);
  expect(analytics.take()).toEqual([]);
});
