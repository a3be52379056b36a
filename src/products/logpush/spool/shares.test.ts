import { expect, it } from "vitest";
import { fc } from "../../../../test/helpers/properties.ts";
import { SpoolShares } from "./shares.ts";

const bytesMax = 1024;

it("never gives more than there is, and each account its part", () => {
  const write = fc.record({
    accountId: fc.constantFrom("a", "b", "c", "d", "e"),
    id: fc.integer({ min: 1, max: 3 }),
    isUploaded: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(write, { maxLength: 2000 }), (writes) => {
      const shares = new SpoolShares(bytesMax);
      shares.setActive(["a", "b", "c", "d", "e"]);
      const used = new Map<string, number>();
      for (const { accountId, isUploaded, id } of writes) {
        // The ids of jobs are not those of other accounts.
        const owner = { accountId, id: id + 10 * accountId.charCodeAt(0) };
        if (isUploaded) {
          shares.add(owner, -1);
          used.set(String(owner.id), Math.max((used.get(String(owner.id)) ?? 0) - 1, 0));
        } else if (shares.hasRoom(owner)) {
          shares.add(owner, 1);
          used.set(String(owner.id), (used.get(String(owner.id)) ?? 0) + 1);
        }
      }
      expect(used.values().reduce((sum, bytes) => sum + bytes, 0)).toBeLessThanOrEqual(bytesMax);
      expect(shares.hasRoom({ accountId: "new", id: 1 })).toBe(true);
    }),
  );
});

it("has room for a new account while all others are full", () => {
  const shares = new SpoolShares(bytesMax);
  const fill = (accountId: string): number => {
    let bytes = 0;
    for (let id = 1; id <= 20; id++)
      for (; shares.hasRoom({ accountId, id }); bytes++) shares.add({ accountId, id }, 1);
    return bytes;
  };
  for (let i = 0; i < 15; i++) fill(`before ${i}`);
  expect(fill("new")).toBeGreaterThan(0.9 * (bytesMax / 32));
  expect(fill("before 0")).toBe(0);
});

it("has room for every new account while more accounts than it was divided for are full", () => {
  const shares = new SpoolShares(1024 * bytesMax);
  const step = 16;
  const fill = (accountId: string): number => {
    let bytes = 0;
    for (let id = 1; id <= 20; id++)
      for (; shares.hasRoom({ accountId, id }); bytes += step) shares.add({ accountId, id }, step);
    return bytes;
  };
  const accounts = Array.from({ length: 24 }, (_, at) => `account ${at}`);
  const rooms = accounts.map(fill);
  expect(rooms.filter((room) => room < step)).toEqual([]);
  expect(rooms.reduce((sum, room) => sum + room, 0)).toBeLessThanOrEqual(1024 * bytesMax);
  expect(accounts.map(fill).every((room) => room === 0)).toBe(true);
  expect(fill("new")).toBeGreaterThan(0);
});

it("counts the same from the disk as from writes", () => {
  const [written, measured] = [new SpoolShares(bytesMax), new SpoolShares(bytesMax)];
  const owners = [
    { accountId: "a", id: 1 },
    { accountId: "a", id: 2 },
    { accountId: "b", id: 3 },
  ];
  for (const owner of owners) written.add(owner, 60);
  measured.setUsed(owners.map((owner) => [owner, 60] as const));
  for (const owner of owners) expect(measured.hasRoom(owner)).toBe(written.hasRoom(owner));
  expect(owners.map((owner) => measured.hasRoom(owner))).toEqual([true, true, true]);
  for (const shares of [written, measured]) shares.add(owners[0]!, 200);
  for (const owner of owners) expect(measured.hasRoom(owner)).toBe(written.hasRoom(owner));
});
