import { FreshReads } from "../../platform/storage/changes/fresh-reads.ts";
import type { Change, Storage, Write } from "../../platform/storage/storage.ts";
import { isUniqueViolation } from "../../platform/storage/dialects.ts";
import type { ModuleMap } from "../stack-traces/messages.ts";
import { newId } from "../../platform/util/ids.ts";
import type { LiveScript, RuntimeScript } from "./runtime-script.ts";
import { ownerId, type ScriptOwner, type Script, type ScriptSettings, type VersionShare } from "./script.ts";
import type { Sealer } from "./versions/sealing.ts";
import * as store from "./store.ts";
import { openBinding } from "./versions/stored-bindings.ts";
import * as versionStore from "./versions/store-versions.ts";
import { scriptErrors, scriptNotFound } from "./errors.ts";
import { clock } from "../../platform/timers/clock.ts";

export type ScriptEdit = Partial<Pick<Script, "tags" | "subdomainEnabled" | "previewsEnabled">> & {
  settings?: Partial<ScriptSettings>;
};

/** Removes data that belongs to a script, in the transaction that deletes the script. */
export type DeleteListener = (trx: Write, script: Script, changed: (change: Change) => void) => Promise<void>;
/** Saves a script in the transaction. */
export type SaveScript = (script: Script) => Promise<void>;
/** Work within a transaction on one script; `current` is undefined if there is no such script. */
export type ScriptWork<T> = (
  trx: Write,
  script: Script | undefined,
  save: SaveScript,
  changed: (change: Change) => void,
) => Promise<T>;

const attemptsMax = 3;

/**
 * The scripts of accounts and of dispatch namespaces. All are in memory without their code, because every
 * request needs their live version.
 */
export class Scripts {
  readonly #storage: Storage;
  readonly #sealer: Sealer;
  readonly #reads: FreshReads<Script[]>;
  readonly #byId = new Map<string, Script>();
  readonly #byOwner = new Map<string, Map<string, Script>>();
  readonly #deleteListeners: DeleteListener[] = [];
  readonly #goneListeners: ((scriptId: string) => void)[] = [];
  /** Increases when scripts are added or deleted, and when live versions change. */
  revision = 0;

  constructor(storage: Storage, sealer: Sealer) {
    this.#storage = storage;
    this.#sealer = sealer;
    this.#reads = new FreshReads(
      () => store.loadAll(storage.read),
      (scripts) => this.#replaceAll(scripts),
    );
    storage.onChange(async (changes) => {
      const ids = new Set(changes.flatMap(({ kind, id }) => (kind === "script" ? [id] : [])));
      for (const id of ids) this.#set(id, await store.findById(storage.read, id));
      if (changes.some(({ kind }) => kind === "account")) await this.start();
    }, this.#reads.reload);
  }

  /** Reads all scripts; also called after a change that may have deleted many. */
  async start(): Promise<void> {
    await this.#reads.load();
  }

  #replaceAll(scripts: readonly Script[]): void {
    const ids = new Set(scripts.map(({ id }) => id));
    for (const id of this.#byId.keys()) if (!ids.has(id)) this.#set(id, undefined);
    for (const script of scripts) this.#set(script.id, script);
  }

  onDelete(listener: DeleteListener): void {
    this.#deleteListeners.push(listener);
  }

  /** Calls `listener` for each deleted script, on any node, also when its namespace or account is deleted. */
  onGone(listener: (scriptId: string) => void): void {
    this.#goneListeners.push(listener);
  }

  /** Drops the scripts of a deleted dispatch namespace. */
  forget(namespaceId: string): void {
    for (const { id } of [...(this.#byOwner.get(namespaceId)?.values() ?? [])]) this.#set(id, undefined);
    this.#byOwner.delete(namespaceId);
    this.revision++;
  }

  find(owner: ScriptOwner, name: string): Script | undefined {
    return this.#byOwner.get(ownerId(owner))?.get(name);
  }

  findById(id: string): Script | undefined {
    return this.#byId.get(id);
  }

  get(owner: ScriptOwner, name: string): Script {
    const script = this.find(owner, name);
    if (script === undefined) throw scriptNotFound(owner, name);
    return script;
  }

  /** Sorted by name. */
  list(owner: ScriptOwner): Script[] {
    const scripts = [...(this.#byOwner.get(ownerId(owner))?.values() ?? [])];
    return scripts.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  count(owner: ScriptOwner): number {
    return this.#byOwner.get(ownerId(owner))?.size ?? 0;
  }

  /** The version for a request. `dice` in [0, 1) chooses between the two versions of a deployment. */
  live(owner: ScriptOwner, name: string, dice = Math.random()): LiveScript | undefined {
    const script = this.find(owner, name);
    const versionId = script && choose(script.live, dice);
    if (script === undefined || versionId === undefined) return undefined;
    return { scriptId: script.id, accountId: script.accountId, name, versionId };
  }

  /** The live version of an account's script, with its code and secrets. */
  async load(accountId: string, name: string): Promise<RuntimeScript | undefined> {
    return this.loadOf({ accountId }, name);
  }

  async loadOf(owner: ScriptOwner, name: string): Promise<RuntimeScript | undefined> {
    const live = this.live(owner, name);
    return live && this.loadVersion(owner, live);
  }

  /** One version of a script; undefined if it has been deleted. */
  async loadVersion(
    owner: ScriptOwner,
    { scriptId, name, versionId }: Pick<LiveScript, "scriptId" | "name" | "versionId">,
  ): Promise<RuntimeScript | undefined> {
    const version = await versionStore.find(this.#storage.read, versionId);
    // A cell may request any version id, so check that it belongs to this script.
    if (version === undefined || version.scriptId !== scriptId) return undefined;
    const modules = await versionStore.modules(this.#storage.read, version.codeId);
    const { content } = version;
    return {
      id: version.id,
      scriptId,
      accountId: owner.accountId,
      name,
      ...(owner.namespace === undefined ? {} : { namespace: owner.namespace.name }),
      mainModule: content.mainModule,
      modules,
      compatibilityDate: content.compatibilityDate,
      compatibilityFlags: content.compatibilityFlags,
      bindings: content.bindings.map((binding) => openBinding(this.#sealer, version.scriptId, binding)),
      ...(content.limits === null ? {} : { limits: content.limits }),
      ...(content.assets === null ? {} : { assets: content.assets }),
      version: {
        id: version.id,
        tag: content.annotations["workers/tag"] ?? "",
        timestamp: new Date(version.createdOn).toISOString(),
      },
      objectClasses: content.objectClasses ?? [],
      codeUpdateDelayMs: content.codeUpdateDelayMs ?? 0,
      handlers: content.handlers,
      namedHandlers: content.namedHandlers,
      ...(content.hasSourceMaps === true ? { sourceMapsId: version.codeId } : {}),
    };
  }

  /** The source maps of an upload's code. */
  async sourceMaps(id: string): Promise<ModuleMap[]> {
    return versionStore.sourceMaps(this.#storage.read, id);
  }

  /** Runs `work` with the script locked until the transaction ends. Saved changes are announced to all listeners. */
  async change<T>(owner: ScriptOwner, name: string, work: ScriptWork<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#storage.write(async (trx, changed) => {
          const current = await store.lock(trx, this.#storage.engine, ownerId(owner), name);
          const save = async (script: Script): Promise<void> => {
            await store.put(trx, script);
            changed({ kind: "script", id: script.id, parentId: script.ownerId });
          };
          return work(trx, current, save, changed);
        });
      } catch (error) {
        // Another request created a script of this name first. A missing row cannot be locked.
        if (!isUniqueViolation(error) || attempt === attemptsMax) throw error;
      }
    }
  }

  /** Creates a script without versions. */
  async create(owner: ScriptOwner, name: string, edit: ScriptEdit): Promise<Script> {
    return this.change(owner, name, async (_trx, current, save) => {
      if (current !== undefined) throw scriptErrors.exists(name);
      const script = edited(newScript(owner, name, clock.now()), edit);
      await save(script);
      return script;
    });
  }

  /** Changes the parts that belong to no version. */
  async edit(owner: ScriptOwner, name: string, change: (script: Script) => ScriptEdit): Promise<Script> {
    return this.change(owner, name, async (_trx, current, save) => {
      if (current === undefined) throw scriptNotFound(owner, name);
      const script = edited({ ...current, modifiedOn: clock.now() }, change(current));
      await save(script);
      return script;
    });
  }

  /** Locks a script that is about to be referenced by name until the transaction ends. Throws if there is none. */
  async lock(trx: Write, owner: ScriptOwner, name: string): Promise<void> {
    const script = await store.lock(trx, this.#storage.engine, ownerId(owner), name);
    if (script === undefined) throw scriptNotFound(owner, name);
  }

  /** Deletes scripts with all their versions, and ignores names without a script. Returns the deleted names. */
  async delete(owner: ScriptOwner, names: readonly string[]): Promise<string[]> {
    const scripts = names.flatMap((name) => this.find(owner, name) ?? []);
    await this.#storage.write(async (trx, changed) => {
      for (const script of scripts) {
        await store.lock(trx, this.#storage.engine, script.ownerId, script.name);
        for (const listener of this.#deleteListeners) await listener(trx, script, changed);
        await store.remove(trx, script.id);
        changed({ kind: "script", id: script.id, parentId: script.ownerId });
      }
    });
    return scripts.map(({ name }) => name);
  }

  #set(id: string, script: Script | undefined): void {
    this.revision++;
    const before = this.#byId.get(id);
    if (before !== undefined && script === undefined) {
      this.#byId.delete(id);
      const siblings = this.#byOwner.get(before.ownerId);
      // Another script may have the name by now.
      if (siblings?.get(before.name)?.id === id) siblings.delete(before.name);
      for (const listener of this.#goneListeners) listener(id);
    }
    if (script === undefined) return;
    this.#byId.set(id, script);
    let siblings = this.#byOwner.get(script.ownerId);
    if (siblings === undefined) this.#byOwner.set(script.ownerId, (siblings = new Map()));
    siblings.set(script.name, script);
  }
}

const edited = (script: Script, { settings, ...edit }: ScriptEdit): Script => ({
  ...script,
  ...edit,
  settings: { ...script.settings, ...settings },
});

function choose(live: readonly VersionShare[], dice: number): string | undefined {
  let rest = dice * 100;
  for (const { versionId, percentage } of live) {
    rest -= percentage;
    if (rest < 0) return versionId;
  }
  return live.at(-1)?.versionId;
}

/** A script before its first version. */
export const newScript = (owner: ScriptOwner, name: string, now: number): Script => ({
  id: newId(),
  accountId: owner.accountId,
  namespaceId: owner.namespace?.id ?? null,
  ownerId: ownerId(owner),
  name,
  tags: [],
  settings: { logpush: false, observability: null, tailConsumers: null },
  live: [],
  versionCount: 0,
  subdomainEnabled: owner.namespace === undefined,
  previewsEnabled: false,
  migrationTag: null,
  createdOn: now,
  modifiedOn: now,
});
