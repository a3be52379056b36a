import { createServer, type AddressInfo } from "node:net";
import { expect, it, vi } from "vitest";
import { edgeDefaults } from "../http/settings.ts";
import { OriginPath } from "./origin-path.ts";
import { Probes } from "./probes.ts";
import { Relays } from "./relays.ts";

it("an excluded path stays excluded while its end does not respond", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const [up, down] = [new OriginPath("127.0.0.1", undefined), new OriginPath("127.0.0.2", undefined)];
  for (const path of [up, down]) path.eject(performance.now());
  const stayAway = vi.spyOn(down, "stayAway");
  const accepted = new Promise((resolve) => server.once("connection", resolve));
  const logger = { info: () => {}, warn: () => {} };
  const probes = new Probes(
    new Relays([], "", edgeDefaults),
    () => [up, down].map((path) => ({ path, port })),
    logger,
  );
  probes.start();
  await accepted;
  await expect.poll(() => stayAway.mock.calls.length).toBe(1);
  probes.stop();
  server.close();
  const endMs = performance.now() + 31_000;
  expect([up, down].map((path) => path.isEjected(endMs))).toEqual([false, false]);
  down.stayAway(1, endMs);
  expect([up, down].map((path) => path.isEjected(endMs))).toEqual([false, true]);
});

it("an edge process connects to no excluded origin: it reports the exclusion to main", async () => {
  const server = createServer(() => connections++);
  let connections = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const path = new OriginPath("127.0.0.1", undefined);
  path.onObservation = () => {};
  const ejectedMs = performance.now();
  path.eject(ejectedMs);
  path.takeObservations();
  const logger = { info: () => {}, warn: () => {} };
  const inEdge = new Probes(new Relays([], "", edgeDefaults), () => [{ path, port }], logger, false);
  inEdge.start();
  const news = await vi.waitUntil(() => path.takeObservations());
  inEdge.stop();
  expect(connections).toBe(0);
  const inMain = new OriginPath("127.0.0.1", undefined);
  const mergedMs = performance.now();
  inMain.merge(news, mergedMs);
  expect(inMain.ejectedForMs(mergedMs)).toBeGreaterThan(29_000 - (mergedMs - ejectedMs));
  server.close();
});

it("an exclusion becomes no longer by being sent between processes, however late", () => {
  const processes = [1, 2].map(() => new OriginPath("127.0.0.1", undefined));
  for (const path of processes) {
    path.onObservation = () => {};
    path.eject(0);
    path.takeObservations(0);
  }
  for (let nowMs = 0; nowMs < 20_000; nowMs += 500) {
    const [from, to] = nowMs % 1000 === 0 ? processes : processes.toReversed();
    from!.reportExclusion(nowMs);
    to!.merge(from!.takeObservations(nowMs + 500)!, nowMs + 500);
  }
  expect(processes.map((path) => path.ejectedForMs(20_000))).toEqual([10_000, 10_000]);
});
