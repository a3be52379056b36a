import { isDeepStrictEqual } from "node:util";
import { lockZone } from "../../platform/storage/dialects.ts";
import type { Read, Storage, Write } from "../../platform/storage/storage.ts";
import { newId } from "../../platform/util/ids.ts";
import { rulesetErrors } from "./errors.ts";
import type { RulesetPhase, Rule, Ruleset } from "./ruleset.ts";
import * as store from "./store.ts";
import { clock } from "../../platform/timers/clock.ts";

export type RuleInput = Omit<Rule, "id" | "version" | "ref" | "lastUpdated"> & { id?: string; ref?: string };
export interface RulesetInput {
  name?: string | undefined;
  description?: string | undefined;
  rules: RuleInput[];
}

/**
 * Throws to reject a ruleset before it is written. Rows that it reads through `trx` stay locked until the
 * commit.
 */
export type RulesetCheck = (trx: Write, ruleset: Ruleset) => Promise<void>;

/** The rulesets of zones: at most one entrypoint for each phase. */
export class Rulesets {
  readonly #storage: Storage;
  readonly #checks = new Map<RulesetPhase, RulesetCheck>();

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** Registers the check of a phase's rules, for the capability whose resources these rules refer to. */
  checkWith(phase: RulesetPhase, check: RulesetCheck): void {
    this.#checks.set(phase, check);
  }

  async loadAll(): Promise<Ruleset[]> {
    return store.loadAll(this.#storage.read);
  }

  async list(zoneId: string): Promise<Ruleset[]> {
    return store.listOfZone(this.#storage.read, zoneId);
  }

  async find(zoneId: string, id: string): Promise<Ruleset> {
    const ruleset = await store.find(this.#storage.read, id);
    if (ruleset?.zoneId !== zoneId) throw rulesetErrors.notFound(id);
    return ruleset;
  }

  async entrypoint(zoneId: string, phase: RulesetPhase): Promise<Ruleset> {
    const ruleset = (await this.list(zoneId)).find((candidate) => candidate.phase === phase);
    if (ruleset === undefined) throw rulesetErrors.noEntrypoint(phase);
    return ruleset;
  }

  /** The rules of a phase; empty if it has no ruleset. */
  async rulesOf(zoneId: string, phase: RulesetPhase, read: Read = this.#storage.read): Promise<Rule[]> {
    const rulesets = await store.listOfZone(read, zoneId);
    return rulesets.find((candidate) => candidate.phase === phase)?.rules ?? [];
  }

  /** Creates the entrypoint of a phase, or replaces all of its rules, with a function of the current ruleset. */
  async putEntrypoint(
    zoneId: string,
    phase: RulesetPhase,
    change: (current: Ruleset | undefined) => RulesetInput,
    mustBeNew = false,
  ): Promise<Ruleset> {
    return this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zoneId);
      const current = (await store.listOfZone(trx, zoneId)).find((candidate) => candidate.phase === phase);
      if (current !== undefined && mustBeNew) throw rulesetErrors.exists(phase);
      const next = revise(current ?? empty(zoneId, phase), change(current));
      await this.#checks.get(phase)?.(trx, next);
      await store.put(trx, next);
      changed({ kind: "ruleset", id: next.id, parentId: zoneId });
      return next;
    });
  }

  /** Changes a ruleset with a function of its current state, in one transaction. */
  async edit(zoneId: string, id: string, change: (current: Ruleset) => RulesetInput): Promise<Ruleset> {
    return this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zoneId);
      const current = await store.find(trx, id);
      if (current?.zoneId !== zoneId) throw rulesetErrors.notFound(id);
      const next = revise(current, change(current));
      await this.#checks.get(next.phase)?.(trx, next);
      await store.put(trx, next);
      changed({ kind: "ruleset", id, parentId: zoneId });
      return next;
    });
  }

  /** Deletes a ruleset, unless `check` throws for its current state. */
  async delete(zoneId: string, id: string, check: (current: Ruleset) => void = () => {}): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zoneId);
      const current = await store.find(trx, id);
      if (current?.zoneId !== zoneId) throw rulesetErrors.notFound(id);
      check(current);
      await store.remove(trx, id);
      changed({ kind: "ruleset", id, parentId: zoneId });
    });
  }
}

const empty = (zoneId: string, phase: RulesetPhase): Ruleset => ({
  id: newId(),
  zoneId,
  kind: "zone",
  phase,
  name: "default",
  description: "",
  version: 0,
  rules: [],
  lastUpdated: 0,
});

/** The next version of a ruleset. Unchanged rules keep their version and time. */
function revise(current: Ruleset, input: RulesetInput): Ruleset {
  const now = clock.now();
  const before = new Map(current.rules.map((rule) => [rule.id, rule]));
  const rules = input.rules.map((rule): Rule => {
    const old = rule.id === undefined ? undefined : before.get(rule.id);
    if (rule.id !== undefined && old === undefined) throw rulesetErrors.ruleNotFound(rule.id);
    const id = old?.id ?? newId();
    const next: Rule = { version: "1", lastUpdated: now, ...rule, id, ref: rule.ref ?? old?.ref ?? id };
    if (old === undefined) return next;
    const isSame = isDeepStrictEqual({ ...next, version: old.version, lastUpdated: old.lastUpdated }, old);
    return isSame ? old : { ...next, version: String(Number(old.version) + 1) };
  });
  return {
    ...current,
    name: input.name ?? current.name,
    description: input.description ?? current.description,
    version: current.version + 1,
    rules,
    lastUpdated: now,
  };
}
