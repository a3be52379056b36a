import { mkdtempSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { fc } from "../../../../test/helpers/properties.ts";
import { UploadSpool } from "./spool.ts";
import { InputShares } from "./input-shares.ts";

it("gives no account more than it leaves free, and each newcomer something", () => {
  const steps = fc.array(fc.tuple(fc.nat(4), fc.integer({ min: 1, max: 400 })), { maxLength: 100 });
  fc.assert(
    fc.property(steps, (all) => {
      const shares = new InputShares(1000);
      const taken = new Map<number, number>();
      for (const [account, bytes] of all) {
        const had = taken.get(account) ?? 0;
        if (shares.take(String(account), bytes)) taken.set(account, had + bytes);
        else if (taken.delete(account)) shares.give(String(account), had);
        const sum = [...taken.values()].reduce((total, each) => total + each, 0);
        expect(shares.bytes).toBe(sum);
        expect(sum).toBeLessThan(1000);
      }
      expect(shares.take("newcomer", 1)).toBe(true);
    }),
  );
});

it("an account that fills its share of the disk is refused, others are not, and the room comes back", async () => {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-inputs-"));
  onTestFinished(async () => rm(folder, { recursive: true }));
  const spool = new UploadSpool(folder, { avif: false, svg: false }, 1300);
  // The first bytes of a GIF with one pixel, and more bytes than it needs.
  const gif = Buffer.concat([
    Buffer.from("47494638396101000100800000000000ffffff2c00000000010001000002024401003b", "hex"),
    Buffer.alloc(365),
  ]);
  const source = async function* (): AsyncGenerator<Uint8Array> {
    yield gif;
  };
  const during = Promise.withResolvers<void>();
  const received = Promise.withResolvers<void>();
  const greedy = spool.use("greedy", async (receive) => {
    await receive(source());
    received.resolve();
    await during.promise;
  });
  await received.promise;
  await expect(spool.use("greedy", async (receive) => receive(source()))).rejects.toThrow("too many images");
  expect(await spool.use("other", async (receive) => (await receive(source())).sizeBytes)).toBe(400);
  during.resolve();
  await greedy;
  expect(await spool.use("greedy", async (receive) => (await receive(source())).sizeBytes)).toBe(400);
  expect(readdirSync(folder)).toEqual([]);
});
