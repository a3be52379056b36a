import { compileExpression, type RequestPredicate } from "../../control/rulesets/expression.ts";
import type { Rule, Ruleset } from "../../control/rulesets/ruleset.ts";
import type { Rulesets } from "../../control/rulesets/rulesets.ts";
import { lockZone } from "../../platform/storage/dialects.ts";
import type { Change, Read, Storage } from "../../platform/storage/storage.ts";
import { newId } from "../../platform/util/ids.ts";
import { plans } from "../../control/zones/plans.ts";
import type { Zone } from "../../control/zones/zone.ts";
import { snippetErrors } from "./errors.ts";
import {
  snippetPhase,
  type RunnableSnippet,
  type Snippet,
  type SnippetRuleInput,
  type SnippetSummary,
} from "./snippet.ts";
import * as store from "./store.ts";
import type { SnippetUpload } from "./upload.ts";
import { clock } from "../../platform/timers/clock.ts";

export interface ActiveSnippetRule {
  matches: RequestPredicate;
  expression: string;
  snippetName: string;
}

/** The enabled rules of a zone in order, and their snippets. */
interface ActiveZone {
  rules: readonly ActiveSnippetRule[];
  snippets: ReadonlyMap<string, RunnableSnippet>;
  readsBody: boolean;
}

const noRules: readonly ActiveSnippetRule[] = [];

/**
 * The snippets of zones and their rules, which are the zone's ruleset of the snippets phase. The snippets of
 * enabled rules are in memory, and up to date once the API responds to a change.
 */
export class Snippets {
  readonly #storage: Storage;
  readonly #rulesets: Rulesets;
  #active = new Map<string, ActiveZone>();
  /** Changes are applied in order, so that an older read never overwrites a newer one. */
  #following: Promise<void> = Promise.resolve();

  constructor(storage: Storage, rulesets: Rulesets) {
    this.#storage = storage;
    this.#rulesets = rulesets;
    rulesets.checkWith(snippetPhase, async (trx, ruleset) => this.#checkRules(trx, ruleset));
    storage.onChange(
      async (changes) => {
        const followed = this.#following.then(async () => this.#follow(changes));
        this.#following = followed.catch(() => {});
        await followed;
      },
      async () => this.#read(),
    );
  }

  /** Loads the snippets of all zones' rules. */
  async load(): Promise<void> {
    (await this.#read())();
  }

  async #read(): Promise<() => void> {
    const active = new Map<string, ActiveZone>();
    for (const { phase, zoneId, rules } of await this.#rulesets.loadAll()) {
      if (phase !== snippetPhase) continue;
      const zone = await this.#prepare(zoneId, rules, undefined);
      if (zone !== undefined) active.set(zoneId, zone);
    }
    return () => (this.#active = active);
  }

  /** The enabled rules of a zone, in order. */
  snippetRules(zoneId: string): readonly ActiveSnippetRule[] {
    return this.#active.get(zoneId)?.rules ?? noRules;
  }

  /** Whether an expression of the zone's rules reads the body. */
  readsBody(zoneId: string): boolean {
    return this.#active.get(zoneId)?.readsBody === true;
  }

  /** A snippet of an enabled rule. */
  snippet(zoneId: string, name: string): RunnableSnippet | undefined {
    return this.#active.get(zoneId)?.snippets.get(name);
  }

  /** Drops a deleted zone. */
  forget(zoneId: string): void {
    this.#active.delete(zoneId);
  }

  async list(zoneId: string): Promise<SnippetSummary[]> {
    return store.list(this.#storage.read, zoneId);
  }

  async find(zoneId: string, name: string): Promise<Snippet> {
    const snippet = await store.find(this.#storage.read, zoneId, name);
    if (snippet === undefined) throw snippetErrors.notFound(name);
    return snippet;
  }

  /** Creates a snippet or replaces its code, unless `check` throws for the version that it has. */
  async put(
    zone: Zone,
    name: string,
    upload: SnippetUpload,
    check: (version: string | undefined) => void = () => {},
  ): Promise<Snippet> {
    const { snippetsMax } = plans[zone.plan];
    return this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zone.id);
      const before = await store.find(trx, zone.id, name);
      check(before?.version);
      if (before === undefined && (await store.list(trx, zone.id)).length >= snippetsMax)
        throw snippetErrors.tooMany(snippetsMax);
      const now = clock.now();
      const snippet: Snippet = {
        zoneId: zone.id,
        name,
        version: before !== undefined && isSameCode(before, upload) ? before.version : newId(),
        createdOn: before?.createdOn ?? now,
        modifiedOn: now,
        ...upload,
      };
      await store.put(trx, snippet);
      changed({ kind: "snippet", id: name, parentId: zone.id });
      return snippet;
    });
  }

  /** Deletes a snippet that has no rule, not even a disabled one. */
  async delete(zoneId: string, name: string): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zoneId);
      const rules = await this.#rulesets.rulesOf(zoneId, snippetPhase, trx);
      if (rules.some((rule) => snippetNameOf(rule) === name)) throw snippetErrors.inUse(name);
      if (!(await store.remove(trx, zoneId, name))) throw snippetErrors.notFound(name);
      changed({ kind: "snippet", id: name, parentId: zoneId });
    });
  }

  async rules(zoneId: string): Promise<Rule[]> {
    return this.#rulesets.rulesOf(zoneId, snippetPhase);
  }

  /** Replaces all rules, or none. A snippet's rule keeps its id when it moves. */
  async replaceRules(
    zoneId: string,
    inputs: readonly SnippetRuleInput[],
    check: (current: readonly Rule[]) => void = () => {},
  ): Promise<Rule[]> {
    const { rules } = await this.#rulesets.putEntrypoint(zoneId, snippetPhase, (ruleset) => {
      const current = ruleset?.rules ?? [];
      check(current);
      const idOf = new Map(current.map((rule) => [snippetNameOf(rule), rule.id]));
      const rules = inputs.map(({ snippetName, ...rule }) => {
        const id = idOf.get(snippetName);
        idOf.delete(snippetName); // a second rule of the snippet is refused below, with its own index
        return {
          ...(id === undefined ? {} : { id }),
          ...rule,
          action: "snippet",
          actionParameters: { snippet_name: snippetName },
        };
      });
      return { rules };
    });
    return rules;
  }

  async #checkRules(trx: Read, { zoneId, rules }: Ruleset): Promise<void> {
    const names = rules.map(snippetNameOf);
    const known = new Set((await store.list(trx, zoneId)).map(({ name }) => name));
    for (const [index, name] of names.entries()) {
      const first = names.indexOf(name);
      if (first !== index) throw snippetErrors.duplicate(index, name, first);
      if (!known.has(name)) throw snippetErrors.unknownSnippet(index, name);
    }
  }

  async #follow(changes: readonly Change[]): Promise<void> {
    const ours = changes.filter(({ kind }) => kind === "ruleset" || kind === "snippet");
    for (const [zoneId = "", own] of Map.groupBy(ours, ({ parentId }) => parentId)) {
      const uploaded = own.filter(({ kind }) => kind === "snippet").map(({ id }) => id);
      // Snippets without an enabled rule are not in memory.
      const isOfInterest =
        uploaded.length < own.length || uploaded.some((name) => this.snippet(zoneId, name) !== undefined);
      if (!isOfInterest) continue;
      // Compiled expressions and unchanged code are reused.
      const before = this.#active.get(zoneId);
      const zone = await this.#prepare(zoneId, await this.rules(zoneId), before, uploaded);
      // Replaced at once, so that no request sees old rules with new snippets.
      if (zone === undefined) this.#active.delete(zoneId);
      else this.#active.set(zoneId, zone);
    }
  }

  /** A zone's enabled rules with their snippets; undefined without such rules. */
  async #prepare(
    zoneId: string,
    all: readonly Rule[],
    before: ActiveZone | undefined,
    uploaded: readonly string[] = [],
  ): Promise<ActiveZone | undefined> {
    const enabled = all.filter((rule) => rule.enabled);
    const predicates = new Map(before?.rules.map((rule) => [rule.expression, rule.matches]));
    const rules: ActiveSnippetRule[] = [];
    for (const { expression, ...rule } of enabled) {
      const matches = predicates.get(expression) ?? (await compileExpression(expression));
      rules.push({ matches, expression, snippetName: snippetNameOf(rule) });
    }
    const snippets = new Map<string, RunnableSnippet>();
    const missing: string[] = [];
    for (const { snippetName } of rules) {
      const known = uploaded.includes(snippetName) ? undefined : before?.snippets.get(snippetName);
      if (known === undefined) missing.push(snippetName);
      else snippets.set(snippetName, known);
    }
    for (const { name, version, mainModule, modules } of await store.findSome(
      this.#storage.read,
      zoneId,
      missing,
    )) {
      snippets.set(name, { id: version, mainModule, modules });
    }
    if (rules.length === 0) return undefined;
    return { rules, snippets, readsBody: rules.some(({ matches }) => matches.readsBody === true) };
  }
}

export const snippetNameOf = ({ actionParameters }: Pick<Rule, "actionParameters">): string =>
  actionParameters["snippet_name"] as string;

const isSameCode = (before: Snippet, { mainModule, modules }: SnippetUpload): boolean =>
  before.mainModule === mainModule && JSON.stringify(before.modules) === JSON.stringify(modules);
