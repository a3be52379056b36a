import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { SourceGone } from "../engine/engine.ts";
import { parseOptions } from "../recipe/options.ts";
import type { MadeResult } from "../results/made-results.ts";
import type { Original } from "./originals.ts";
import { Transformations } from "./transformations.ts";

const original: Original = {
  accountId: "d",
  folder: "a",
  name: "a/b",
  path: "/nowhere",
  probe: {
    format: "png",
    width: 100,
    height: 100,
    orientation: 1,
    frames: 1,
    hasAlpha: false,
    hasPalette: false,
    isProgressive: false,
    sizeBytes: 1000,
  },
  sha256: "c".repeat(64),
  cacheControl: undefined,
  lastModified: undefined,
  receivedOn: 0,
  focus: null,
  isCurrent: true,
  isStorable: true,
};

it("looks for a picture again that was removed before its result was made", async () => {
  let attempts = 0;
  const transformations = new Transformations({
    originals: { use: async (_wanted: unknown, use: (found: Original) => unknown) => use(original) },
    results: {
      kept: async () => undefined,
      make: async () => {
        if (++attempts === 1) throw new SourceGone("removed");
        const made: MadeResult = {
          stored: { bytes: Buffer.from("made") },
          times: { queuedMs: 0, workedMs: 1 },
        };
        return made;
      },
    },
  } as unknown as ConstructorParameters<typeof Transformations>[0]);
  const wanted = { transform: parseOptions("width=50"), source: new URL("http://a.example/picture.png") };
  await using server = createServer((request, response) => {
    transformations
      .answer({ id: "zone", accountId: "d" }, wanted, [], async () => {}, request, response)
      .catch(() => response.destroy());
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } });
  expect([response.status, await response.text(), attempts]).toEqual([200, "made", 2]);
});
