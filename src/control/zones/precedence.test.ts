import { fc } from "../../../test/helpers/properties.ts";
import { describe, expect, it } from "vitest";
import { EdgeSnapshot, EdgeZone } from "../../edge/configuration/snapshot.ts";
import { nameKey } from "../../dns/name-server/wire/name.ts";
import { NameSpace } from "../../dns/name-server/zone/name-space.ts";
import { ServedZone } from "../../dns/name-server/zone/zone.ts";
import type { ServedZoneConfiguration } from "../../dns/name-server/zone/configuration.ts";
import { secureContexts } from "../../edge/tls/tls-edge.ts";
import { governing, Precedence, type Standing } from "./precedence.ts";
import type { Zone } from "./zone.ts";

const names = ["shop.test", "b.shop.test", "a.b.shop.test", "c.a.b.shop.test", "d.shop.test", "other.test"];
const hosts = [...names, ...names.map((name) => `www.${name}`), "x.y.b.shop.test", "nothing.example"];
const accounts = ["A", "B", "C"];

/** A name belongs to one zone at a time, but zones of different accounts can have it one after another. */
type Place = Pick<Zone, "accountId" | "status" | "createdOn" | "activatedOn" | "authorizedBy" | "type">;
const place: fc.Arbitrary<Place> = fc.record({
  accountId: fc.constantFrom(...accounts),
  status: fc.constantFrom("pending", "active", "active", "moved"),
  createdOn: fc.nat(20),
  activatedOn: fc.nat(20),
  authorizedBy: fc.oneof(fc.constant(null), fc.constantFrom(...names)),
  type: fc.constantFrom("full", "full", "partial"),
});
type Step = { name: string; place: Place | undefined };
const step: fc.Arbitrary<Step> = fc.record({
  name: fc.constantFrom(...names),
  place: fc.option(place, { nil: undefined, freq: 4 }),
});

const zoneOf = (name: string, given: Place, number: number): Zone =>
  ({ id: `${name} ${number}`, name, ...given }) as Zone;

/** A second, simple implementation of precedence: the inner zone serves a name only if it may. */
function oracle(zones: readonly Zone[], host: string): Zone | undefined {
  const around = zones.filter(({ name }) => host === name || host.endsWith(`.${name}`));
  const inner = around.reduce<Zone | undefined>(
    (longest, each) => (longest === undefined || each.name.length > longest.name.length ? each : longest),
    undefined,
  );
  if (inner === undefined) return undefined;
  const outer = oracle(
    zones.filter((zone) => zone !== inner),
    inner.name,
  );
  if (outer === undefined || outer.accountId === inner.accountId) return inner;
  const [isActive, isOuterActive] = [inner.status === "active", outer.status === "active"];
  if (isActive !== isOuterActive) return isActive ? inner : outer;
  if (!isActive) return inner.createdOn < outer.createdOn ? inner : outer;
  if (inner.authorizedBy === outer.name || inner.authorizedBy === inner.name) return inner;
  return inner.activatedOn! < outer.activatedOn! ? inner : outer;
}

const authority = { issue: () => ({ certificate: "", privateKey: "" }) } as never;

/** Every component that looks zones up by name, with the same changes applied. */
class Consumers {
  readonly precedence = new Precedence();
  readonly snapshot = new EdgeSnapshot();
  readonly space = new NameSpace();
  readonly contexts = secureContexts(authority, this.snapshot);

  set(zone: Zone): void {
    this.precedence.set(zone);
    const known = this.snapshot.get(zone.id) ?? new EdgeZone(zone.id, zone.name, false);
    this.snapshot.add(known);
    known.configuration = zone;
    this.snapshot.setStanding(zone);
    // A certificate for names of all customers. The owner of one of the names can upload such a certificate.
    const certificate = { hosts: [...hosts, "*.shop.test"], rank: zone.createdOn, expiresOn: Infinity };
    this.contexts.set(zone.id, [{ certificate: zone.id, privateKey: "", ...certificate }]);
    if (zone.type !== "full") return;
    const configuration = { id: zone.id, accountId: zone.accountId, name: zone.name, standing: zone };
    this.space.add(new ServedZone(configuration as unknown as ServedZoneConfiguration, undefined));
  }

  delete({ id }: Zone): void {
    this.precedence.delete(id);
    this.snapshot.remove(id);
    this.contexts.set(id, []);
    this.space.remove(id);
  }
}

const counts = { answered: 0, yielded: 0 };

it("every component finds the same zone for a name after each change", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 14 }), (steps) => {
      const zones = new Map<string, Zone>();
      const consumers = new Consumers();
      for (const [number, { name, place: given }] of steps.entries()) {
        const before = zones.get(name);
        if (before !== undefined && given?.accountId !== before.accountId) {
          zones.delete(name);
          consumers.delete(before);
        }
        if (given !== undefined) {
          const same = zones.get(name);
          const zone = { ...zoneOf(name, given, number), ...(same && { id: same.id, type: same.type }) };
          zones.set(name, zone);
          consumers.set(zone);
        }
        check(consumers, [...zones.values()]);
      }
    }),
    { numRuns: 500 },
  );
  expect(Math.min(counts.answered, counts.yielded)).toBeGreaterThan(1000);
});

function check({ precedence, snapshot, space, contexts }: Consumers, zones: Zone[]): void {
  for (const host of hosts) {
    const expected = oracle(zones, host);
    const longest = zones.filter(({ name }) => host === name || host.endsWith(`.${name}`));
    if (expected !== undefined) counts.answered++;
    if (expected !== undefined && longest.some(({ name }) => name.length > expected.name.length))
      counts.yielded++;
    expect(precedence.find(host)).toBe(expected?.id);
    expect(snapshot.findZone(host)?.id).toBe(expected?.id);
    // A partial zone has its authoritative servers elsewhere.
    const full = zones.filter(({ type }) => type === "full");
    expect(space.find(nameKey(host))?.configuration.id).toBe(oracle(full, host)?.id);
    const certificate = contexts.find(host);
    const owner = zones.find(({ id }) => id === certificate?.certificate);
    expect(owner?.accountId).toBe(expected?.accountId);
  }
}

describe("a zone created inside or around others", () => {
  const zone = (name: string, accountId: string, more: Partial<Standing> = {}): Standing => ({
    id: `${name} ${accountId}`,
    name,
    accountId,
    status: "pending",
    createdOn: 0,
    activatedOn: null,
    authorizedBy: null,
    ...more,
  });
  const active = (activatedOn: number): Partial<Standing> => ({
    status: "active",
    createdOn: activatedOn,
    activatedOn,
  });
  const outer = "shop.test";
  const inner = "login.shop.test";

  it.each<[string, Partial<Standing>, Partial<Standing>, "outer" | "inner"]>([
    ["pending, and the one around it is older", { createdOn: 1 }, { createdOn: 2 }, "outer"],
    ["pending, and older than the one around it", { createdOn: 2 }, { createdOn: 1 }, "inner"],
    ["pending and older, and the one around it is active", active(2), { createdOn: 1 }, "outer"],
    ["pending and authorized, and the one around it is active", active(1), { authorizedBy: outer }, "outer"],
    [
      "pending and authorized, and the one around it is older",
      { createdOn: 1 },
      { createdOn: 2, authorizedBy: inner },
      "outer",
    ],
    ["active, and the one around it is pending", { createdOn: 1 }, active(2), "inner"],
    ["active later than the one around it", active(1), active(2), "outer"],
    ["active before the one around it", active(2), active(1), "inner"],
    ["active, and delegated by the one around it", active(1), { ...active(2), authorizedBy: outer }, "inner"],
    ["active, and proved", active(1), { ...active(2), authorizedBy: inner }, "inner"],
    [
      "active, and delegated by a zone other than that one",
      active(1),
      { ...active(2), authorizedBy: "test" },
      "outer",
    ],
    ["moved, which was active before", active(2), { ...active(1), status: "moved" }, "outer"],
  ])("that is %s", (_, around, inside, winner) => {
    const [first, second] = [zone(outer, "A", around), zone(inner, "B", inside)];
    expect(governing([first, second])).toBe(winner === "outer" ? first : second);
    // Within an account the longest name wins.
    const own = { ...second, accountId: "A" };
    expect(governing([first, own])).toBe(own);
  });

  it("gains no names while it is pending, and none from active zones when it is not authorized", () => {
    const newcomer = fc.record({
      name: fc.constantFrom(...names),
      status: fc.constantFrom("pending" as const, "active" as const),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 6 }), newcomer, (steps, { name, status }) => {
        const zones = new Map(
          steps.flatMap((each, i) => (each.place ? [[each.name, zoneOf(each.name, each.place, i)]] : [])),
        );
        if (zones.has(name)) return;
        const precedence = new Precedence();
        for (const each of zones.values()) precedence.set(each);
        const before = hosts.map((host) => precedence.find(host));
        precedence.set(zone(name, "newcomer", { ...active(1000), status }));
        for (const [i, host] of hosts.entries()) {
          const was = [...zones.values()].find(({ id }) => id === before[i]);
          if (was === undefined) continue;
          // An active zone may take the names of inactive zones inside it.
          if (status === "active" && was.status !== "active") continue;
          expect([host, precedence.find(host)]).toEqual([host, was.id]);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
