import { pino } from "pino";
import { expect, it, onTestFinished } from "vitest";
import { MessageBus } from "../../platform/processes/message-bus.ts";
import type { OwnProcess } from "../../platform/processes/own-process.ts";
import { edgeDefaults } from "../http/settings.ts";
import { AddressPolicy } from "../origin/address-policy.ts";
import { Origins } from "../origin/origins.ts";
import { Analytics } from "./analytics.ts";
import { shareObservations } from "./between-processes.ts";
import type { SetAside } from "./probes.ts";
import { Relays } from "./relays.ts";
import { SmartRouting } from "./routing.ts";

interface Process {
  routing: SmartRouting;
  analytics: Analytics;
  bus: MessageBus;
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
  const [analytics, bus] = [new Analytics(), new MessageBus()];
  const routing = new SmartRouting(origins, relays, analytics, pino({ enabled: false }));
  shareObservations(routing, analytics, bus, { role } as OwnProcess, (id) => id === "zone");
  return {
    routing,
    analytics,
    bus,
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
  const received = <T>(message: T): T => structuredClone(message);
  for (const edge of edges)
    edge.bus.link = {
      waitingBytes: () => 0,
      send: async (message) =>
        main.bus.deliver(received(message), () => {
          for (const other of edges) if (other !== edge) void other.bus.deliver(received(message));
        }),
    };
  main.bus.link = {
    waitingBytes: () => 0,
    send: async (message) => {
      for (const edge of edges) await edge.bus.deliver(received(message));
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

it("a path stays excluded in all processes while main does not reach it", async () => {
  const { main, edges } = newNode();
  const [first] = edges;
  while (first.routing.setAside().length === 0) await first.send({ "192.0.2.2": 0 });
  const [{ path }] = main.routing.setAside() as [SetAside];
  path.stayAway(100_000, performance.now());
  const excludedForMs = ({ routing }: Process): number =>
    routing.setAside()[0]!.path.ejectedForMs(performance.now());
  for (const each of edges) await expect.poll(() => excludedForMs(each)).toBeGreaterThan(90_000);
});

it("an edge process sends the results of zones with new requests only", async () => {
  const analytics = new Analytics();
  for (let zone = 0; zone < 1000; zone++) analytics.zone(String(zone)).add("smart", 1);
  expect(analytics.take().length).toBe(1000);
  analytics.zone("7").failed();
  expect(analytics.take()).toMatchObject([["7", { failures: 1 }]]);
  expect(analytics.take()).toEqual([]);
});
