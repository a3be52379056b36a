import { proxiableTypes } from "../../dns/records/record.ts";
import type { DnsRecords } from "../../dns/records/records.ts";
import { rereadRecords } from "../../dns/records/reread.ts";
import { listHosts, type HostRecord } from "../../dns/records/store.ts";
import { compileExpression } from "../../control/rulesets/expression.ts";
import { originOverride } from "../../control/rulesets/origin-rule.ts";
import type { Ruleset } from "../../control/rulesets/ruleset.ts";
import type { Rulesets } from "../../control/rulesets/rulesets.ts";
import type { RestoredRows } from "../../platform/storage/changes/listeners.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { Zone } from "../../control/zones/zone.ts";
import { EdgeSnapshot, EdgeZone, type HostEntry, type OriginRule, type OriginTarget } from "./snapshot.ts";

/** Keeps the edge's snapshot equal to storage. A changed record updates only its name. */
export class EdgeSnapshotUpdater {
  readonly snapshot: EdgeSnapshot;
  readonly #storage: Storage;
  readonly #rulesets: Rulesets;

  constructor(
    storage: Storage,
    records: DnsRecords,
    rulesets: Rulesets,
    platformNames: readonly string[] = [],
  ) {
    this.snapshot = new EdgeSnapshot(platformNames);
    this.#storage = storage;
    this.#rulesets = rulesets;
    records.changes.onChange(async ({ zoneId, names }) => {
      const zone = this.snapshot.get(zoneId);
      for (const [name, hosts] of names) zone?.setHost(name, entryAt(hosts));
    });
    storage.onChange(
      async (changes) => {
        for (const { kind, parentId } of changes)
          if (kind === "ruleset" && parentId !== undefined) await this.#reloadRules(parentId);
      },
      async (restored) => this.#read(restored),
    );
  }

  /** Loads the records and rules of all zones. */
  async load(): Promise<void> {
    (await this.#read())();
  }

  async #read(restored?: RestoredRows): Promise<() => void> {
    const setHosts = await this.#readHosts(restored);
    const rules = new Map<string, readonly OriginRule[]>();
    for (const ruleset of await this.#rulesets.loadAll()) {
      if (ruleset.phase === "http_request_origin") rules.set(ruleset.zoneId, await rulesOf(ruleset));
    }
    return () => {
      setHosts();
      for (const zone of this.snapshot.zones()) zone.originRules = rules.get(zone.id) ?? [];
    };
  }

  async #readHosts(restored: RestoredRows | undefined): Promise<() => void> {
    const { read } = this.#storage;
    const has = (zoneId: string): boolean => this.snapshot.get(zoneId) !== undefined;
    const reread = await rereadRecords(read, restored, has);
    if (reread !== undefined)
      return () => {
        for (const { zoneId, isWhole, names } of reread) {
          const zone = this.snapshot.get(zoneId);
          if (isWhole) zone?.setHosts(entriesOf(names));
          else for (const [name, hosts] of names) zone?.setHost(name, entryAt(hosts));
        }
      };
    const byZone = new Map<string, Map<string, HostRecord[]>>();
    for (const host of await listHosts(read)) {
      let byName = byZone.get(host.zoneId);
      if (byName === undefined) byZone.set(host.zoneId, (byName = new Map()));
      const list = byName.get(host.name);
      if (list === undefined) byName.set(host.name, [host]);
      else list.push(host);
    }
    return () => {
      for (const zone of this.snapshot.zones()) zone.setHosts(entriesOf(byZone.get(zone.id) ?? new Map()));
    };
  }

  /** Adds or updates a zone; undefined removes it. */
  setZone(id: string, zone: Zone | undefined): void {
    if (zone === undefined) {
      this.snapshot.remove(id);
      return;
    }
    let known = this.snapshot.get(id);
    if (known === undefined) this.snapshot.add((known = new EdgeZone(id, zone.name, zone.paused)));
    known.isPaused = zone.paused;
    known.configuration = zone;
    this.snapshot.setStanding(zone);
  }

  async #reloadRules(zoneId: string): Promise<void> {
    const rulesets = await this.#rulesets.list(zoneId);
    const rules = await rulesOf(rulesets.find((ruleset) => ruleset.phase === "http_request_origin"));
    const zone = this.snapshot.get(zoneId);
    if (zone !== undefined) zone.originRules = rules;
  }
}

async function rulesOf(ruleset: Ruleset | undefined): Promise<OriginRule[]> {
  const enabled = (ruleset?.rules ?? []).filter((rule) => rule.enabled);
  return Promise.all(
    enabled.map(async (rule): Promise<OriginRule> => ({
      matches: await compileExpression(rule.expression),
      ...originOverride(rule),
    })),
  );
}

const entriesOf = (names: ReadonlyMap<string, readonly HostRecord[]>): Map<string, HostEntry> =>
  new Map([...names].map(([name, hosts]) => [name, entryOf(hosts)]));

const entryAt = (hosts: readonly HostRecord[]): HostEntry | undefined =>
  hosts.length === 0 ? undefined : entryOf(hosts);

/** A name counts as proxied when any of its records is. */
function entryOf(hosts: readonly HostRecord[]): HostEntry {
  return {
    isProxied: hosts.some((host) => host.proxied),
    targets: hosts
      .filter((host) => proxiableTypes.has(host.type))
      .map(({ type, content }) => ({ type, content }) as OriginTarget),
  };
}
