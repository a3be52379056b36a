import { describe, expect, it, vi } from "vitest";
import { types } from "../wire/constants.ts";
import { Flattening, type AddressLookup } from "./flattening.ts";

const wanted = { target: "target.test", type: types.A };
const found = { addresses: ["192.0.2.1"], ttl: 60 };
const hourMs = 3_600_000;
const startMs = Date.UTC(2026, 0, 1);

describe("the addresses of an external name", () => {
  it("are looked up once for all waiting queries", () => {
    const want = vi.fn<(asked: AddressLookup) => void>();
    const flattening = new Flattening(want);
    const known = vi.fn<() => void>();
    for (let waiting = 0; waiting < 3; waiting++) {
      expect(flattening.find(wanted, startMs)).toBe(undefined);
      flattening.await(wanted, known);
    }
    flattening.set(wanted, found, startMs);
    expect([want.mock.calls.length, known.mock.calls.length]).toEqual([1, 3]);
    expect(flattening.find(wanted, startMs + 59_999)).toMatchObject(found);
  });

  it("are looked up again after their TTL, and are served until then", () => {
    const want = vi.fn<(asked: AddressLookup) => void>();
    const flattening = new Flattening(want);
    flattening.set(wanted, found, startMs);
    expect(flattening.find(wanted, startMs + 61_000)).toMatchObject({ addresses: found.addresses, ttl: 30 });
    expect(want).toHaveBeenCalledTimes(1);
    flattening.set(wanted, { addresses: ["192.0.2.2"], ttl: 60 }, startMs + 61_000);
    expect(flattening.find(wanted, startMs + 62_000)).toMatchObject({ addresses: ["192.0.2.2"] });
  });

  it("are served for an hour longer if they cannot be found again", () => {
    const flattening = new Flattening(() => {});
    flattening.set(wanted, found, startMs);
    flattening.set(wanted, undefined, startMs + 61_000);
    expect(flattening.find(wanted, startMs + 61_500)).toMatchObject({ addresses: found.addresses });
    flattening.set(wanted, undefined, startMs + hourMs + 61_000);
    expect(flattening.find(wanted, startMs + hourMs + 61_500)).toBe("failed");
  });
});
