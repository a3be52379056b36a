import { describe, expect, it } from "vitest";
import { digestOf, newKey } from "./key.ts";
import { afterCheck, type SigningState } from "./dnssec.ts";

const name = "example.com";
const key = newKey();
const ours = { keyTag: 1, digest: digestOf(name, key.publicKey).toLowerCase() };
const other = { keyTag: 2, digest: "ab".repeat(32) };
const state = (status: SigningState["status"], more: Partial<SigningState> = {}): SigningState => ({
  zoneId: "z",
  status,
  ...key,
  isMultiSigner: false,
  dsTtl: 3600,
  dsGoneOn: null,
  modifiedOn: 0,
  ...more,
});

describe("a signed zone", () => {
  it("waits for its DS in the parent", () => {
    const pending = state("pending");
    expect(afterCheck(pending, name, { ttl: 60, records: [] }, 0)).toBe(pending);
    expect(afterCheck(pending, name, { ttl: 60, records: [other] }, 0)).toBe(pending);
    const active = afterCheck(pending, name, { ttl: 60, records: [other, ours] }, 0);
    expect(active).toMatchObject({ status: "active", dsTtl: 60 });
  });
});

describe("a zone whose signing is being disabled", () => {
  const leaving = state("pending-disabled");
  const gone = { ttl: 0, records: [] };

  it("stays signed while the parent has any DS", () => {
    expect(afterCheck(leaving, name, { ttl: 60, records: [ours] }, 0)).toBe(leaving);
    expect(afterCheck(leaving, name, { ttl: 60, records: [other] }, 0)).toBe(leaving);
  });

  it("stays signed until the DS has expired from caches", () => {
    const waiting = afterCheck(leaving, name, gone, 1000);
    expect(waiting).toMatchObject({ status: "pending-disabled", dsGoneOn: 1000 });
    expect(afterCheck(waiting, name, gone, 3_600_999)).toBe(waiting);
    expect(afterCheck(waiting, name, gone, 3_601_000)).toMatchObject({ status: "disabled", dsGoneOn: null });
  });

  it("starts waiting again if the DS comes back", () => {
    const waiting = afterCheck(leaving, name, gone, 1000);
    expect(afterCheck(waiting, name, { ttl: 60, records: [ours] }, 2000).dsGoneOn).toBe(null);
  });

  it("is unsigned at once if parents are not checked", () => {
    expect(afterCheck(leaving, name, "follows", 0).status).toBe("disabled");
  });
});
