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
  const endMs = performance.now() + 31_000;
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
  expect([up, down].map((path) => path.isEjected(endMs))).toEqual([false, false]);
  down.stayAway(endMs + 1);
  expect([up, down].map((path) => path.isEjected(endMs))).toEqual([false, true]);
});
