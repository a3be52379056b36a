import { ApiErrors } from "../api/errors.ts";
import type { AssetConfig } from "../assets/config.ts";
import type { Read, Storage, Write } from "../storage/storage.ts";
import { newUuid } from "../util/ids.ts";
import { missingResources, type Binding, type BindingResources, type InheritBinding } from "./bindings.ts";
import { deploy } from "./deployments.ts";
import { inspected, type Code, type InspectedCode } from "./code.ts";
import type { RuntimeScript, ScriptAssets } from "./runtime-script.ts";
import {
  scriptErrors,
  type Author,
  type Owner,
  type Script,
  type ScriptSettings,
  type StoredBinding,
  type Version,
  type VersionContent,
} from "./script.ts";
import { newScript, type SaveScript, type Scripts } from "./scripts.ts";
import type { Sealer } from "./sealing.ts";
import * as store from "./store-versions.ts";
import { openBinding, storedBindings } from "./stored-bindings.ts";

/** Where static files are kept. A version names a manifest that stays as it is. */
export interface AssetManifests {
  /** The manifest of a completed upload for this script. Throws where the token is not one. */
  complete(owner: Owner, scriptName: string, completionToken: string): Promise<string>;
}

/** How long code took until it waited for requests, or why it did not get there. */
export interface Started {
  tookMs: number;
  fault: string | undefined;
}
export type Start = (script: RuntimeScript) => Promise<Started>;

/** Static files of a new version: those of an upload, or those of the version before. */
export type AssetsInput =
  | { completionToken: string; config: AssetConfig }
  | { keep: true; config: AssetConfig | undefined };

/** What a new version has that the one before it had not. Undefined fields of a revision stay as they were. */
export interface VersionInput {
  bindings?: readonly (Binding | InheritBinding)[] | undefined;
  /** Binding types of the version before that are kept where no new binding has their name. */
  keepBindings?: readonly string[] | undefined;
  compatibilityDate?: string | undefined;
  compatibilityFlags?: readonly string[] | undefined;
  limits?: VersionContent["limits"] | undefined;
  placement?: VersionContent["placement"] | undefined;
  usageModel?: string | undefined;
  assets?: AssetsInput | undefined;
  annotations?: Readonly<Record<string, string>> | undefined;
}

export interface Revision extends VersionInput {
  /** Whether it is put to work at once, which it is unless told otherwise. */
  deploy?: boolean | undefined;
  code?: Code | undefined;
  tags?: readonly string[] | undefined;
  settings?: Partial<ScriptSettings> | undefined;
}

export type Upload = Revision & { code: Code };

const defaultCompatibilityDate = "2021-11-02";
/** Versions that stay beside those in use: account scripts can go back; customer scripts finish what they began. */
const versionsKept = { account: 100, namespace: 2 };

/** Makes versions of scripts. A version never changes; whatever is changed about a script becomes a new one. */
export class Versions {
  readonly #storage: Storage;
  readonly #scripts: Scripts;
  readonly #sealer: Sealer;
  readonly #resources: BindingResources;
  readonly #manifests: AssetManifests;
  readonly #needs: ((trx: Write, versionIds: readonly string[]) => Promise<readonly string[]>)[] = [];
  readonly #startCode: Start;
  /** The largest upload that is read. */
  readonly uploadBytesMax: number;

  constructor(
    storage: Storage,
    scripts: Scripts,
    sealer: Sealer,
    resources: BindingResources,
    manifests: AssetManifests,
    startCode: Start,
    uploadBytesMax: number,
  ) {
    this.#storage = storage;
    this.#scripts = scripts;
    this.#sealer = sealer;
    this.#resources = resources;
    this.#manifests = manifests;
    this.#startCode = startCode;
    this.uploadBytesMax = uploadBytesMax;
  }

  /** Says which of some versions may not be forgotten yet, because something began with them. */
  onForget(need: (trx: Write, versionIds: readonly string[]) => Promise<readonly string[]>): void {
    this.#needs.push(need);
  }

  /** The version that runs; of two, the first. */
  async current(script: Script): Promise<Version> {
    const id = script.live[0]?.versionId;
    const version = id === undefined ? undefined : await store.find(this.#storage.read, id);
    if (version === undefined) throw scriptErrors.noVersions();
    return version;
  }

  /** As `current`, of many scripts. */
  async currentOf(scripts: readonly Script[]): Promise<{ script: Script; version: Version }[]> {
    const ids = scripts.flatMap(({ live }) => live[0]?.versionId ?? []);
    const versions = await store.findMany(this.#storage.read, ids);
    return scripts.flatMap((script) => {
      const version = versions.get(script.live[0]?.versionId ?? "");
      return version === undefined ? [] : [{ script, version }];
    });
  }

  async get(script: Script, id: string): Promise<Version> {
    const version = await store.find(this.#storage.read, id);
    if (version?.scriptId !== script.id) throw scriptErrors.versionNotFound(id);
    return version;
  }

  async latest(script: Script): Promise<Version> {
    const version = await store.latest(this.#storage.read, script.id);
    if (version === undefined) throw scriptErrors.noVersions();
    return version;
  }

  async delete(owner: Owner, name: string, id: string): Promise<void> {
    await this.#scripts.change(owner, name, async (trx, script) => {
      const version = script && (await store.find(trx, id));
      if (script === undefined || version?.scriptId !== script.id) throw scriptErrors.versionNotFound(id);
      if (script.live.some(({ versionId }) => versionId === id)) throw scriptErrors.versionIsLive();
      await store.remove(trx, script.id, [id]);
    });
  }

  /** Newest first. */
  async list(
    script: Script,
    page: { page: number; per_page: number },
  ): Promise<{ versions: Version[]; totalCount: number }> {
    const [versions, totalCount] = await Promise.all([
      store.list(this.#storage.read, script.id, page.per_page, (page.page - 1) * page.per_page),
      store.count(this.#storage.read, script.id),
    ]);
    return { versions, totalCount };
  }

  /** The static files of a version, by its id. */
  async assetsOf(id: string): Promise<ScriptAssets | undefined> {
    return (await store.find(this.#storage.read, id))?.content.assets ?? undefined;
  }

  async codeOf(version: Version): Promise<store.StoredModule[]> {
    return store.modules(this.#storage.read, version.codeId);
  }

  /** Takes new code: a whole new version, deployed at once unless it is only to be kept. */
  async upload(
    owner: Owner,
    name: string,
    upload: Upload,
    author: Author,
    options: { deploy: boolean },
  ): Promise<{ script: Script; version: Version }> {
    const code = await inspected(upload.code);
    await this.#checkBindings(owner, name, upload, code.exportNames);
    const assets = await this.#assets(owner, name, upload.assets);
    const compatibility = {
      compatibilityDate: upload.compatibilityDate ?? defaultCompatibilityDate,
      compatibilityFlags: upload.compatibilityFlags ?? [],
    };
    const startupTimeMs = await this.#start(owner, name, code, compatibility, upload);
    return this.#scripts.change(owner, name, async (trx, current, save) => {
      if (current === undefined && !options.deploy) throw scriptErrors.notFound(owner, name);
      const now = Date.now();
      const script = current ?? newScript(owner, name, now);
      const base = current && (await store.latest(trx, script.id));
      const content: VersionContent = {
        ...code.facts,
        ...compatibility,
        startupTimeMs,
        bindings: await this.#stored(trx, script.id, base, upload),
        limits: upload.limits ?? null,
        placement: upload.placement ?? null,
        usageModel: upload.usageModel ?? "standard",
        assets: assets(base),
        annotations: upload.annotations ?? {},
        author,
      };
      const codeId = newUuid();
      const edited: Script = {
        ...script,
        tags: upload.tags ?? script.tags,
        settings: { ...script.settings, ...upload.settings },
      };
      const added = await this.#add(trx, edited, save, { content, codeId, deploy: options.deploy });
      await store.insertModules(trx, script.id, codeId, code.modules);
      return added;
    });
  }

  /**
   * A new version that differs from the latest one as told. Where it is deployed at once the latest must be what runs:
   * otherwise a setting would bring code along that nobody has deployed.
   */
  async revise(
    owner: Owner,
    name: string,
    author: Author,
    input: (latest: Version) => Revision,
  ): Promise<{ script: Script; version: Version }> {
    for (;;) {
      const latest = await this.latest(this.#scripts.get(owner, name));
      const revised = await this.#revise(owner, name, author, latest, input(latest));
      // Somebody else made a version meanwhile, which this one is to follow.
      if (revised !== undefined) return revised;
    }
  }

  async #revise(
    owner: Owner,
    name: string,
    author: Author,
    latest: Version,
    change: Revision,
  ): Promise<{ script: Script; version: Version } | undefined> {
    const { content } = latest;
    const { deploy: isDeployed = true } = change;
    const code = change.code === undefined ? undefined : await inspected(change.code);
    const classNames =
      code === undefined ? new Set(content.namedHandlers.map((each) => each.name)) : code.exportNames;
    await this.#checkBindings(owner, name, change, classNames, content.assets);
    const assets = await this.#assets(owner, name, change.assets ?? { keep: true, config: undefined });
    const compatibility = {
      compatibilityDate: change.compatibilityDate ?? content.compatibilityDate,
      compatibilityFlags: change.compatibilityFlags ?? content.compatibilityFlags,
    };
    let { startupTimeMs } = content;
    if (
      code !== undefined ||
      change.compatibilityDate !== undefined ||
      change.compatibilityFlags !== undefined
    ) {
      const runs = code ?? { modules: await this.codeOf(latest), facts: content };
      const bindings =
        change.bindings ?? content.bindings.map(({ name }) => ({ type: "inherit" as const, name }));
      startupTimeMs = await this.#start(owner, name, runs, compatibility, { ...change, bindings });
    }
    return this.#scripts.change(owner, name, async (trx, current, save) => {
      const base = current && (await store.latest(trx, current.id));
      if (current === undefined || base?.id !== latest.id) return undefined;
      if (isDeployed && (current.live.length !== 1 || current.live[0]!.versionId !== base.id))
        throw scriptErrors.latestNotDeployed();
      const revised: VersionContent = {
        ...content,
        ...compatibility,
        startupTimeMs,
        bindings:
          change.bindings === undefined
            ? content.bindings
            : await this.#stored(trx, current.id, base, change),
        limits: change.limits === undefined ? content.limits : change.limits,
        placement: change.placement === undefined ? content.placement : change.placement,
        usageModel: change.usageModel ?? content.usageModel,
        assets: assets(base),
        annotations: change.annotations ?? {},
        author,
        ...(code === undefined ? {} : code.facts),
      };
      const codeId = code === undefined ? base.codeId : newUuid();
      const edited: Script = {
        ...current,
        tags: change.tags ?? current.tags,
        settings: { ...current.settings, ...change.settings },
      };
      const added = await this.#add(trx, edited, save, { content: revised, codeId, deploy: isDeployed });
      if (code !== undefined) await store.insertModules(trx, current.id, codeId, code.modules);
      return added;
    });
  }

  /** Refuses, with all their reasons, bindings to what does not exist. */
  async #checkBindings(
    owner: Owner,
    name: string,
    { bindings, assets }: VersionInput,
    classNames: ReadonlySet<string> | undefined,
    keptAssets: ScriptAssets | null = null,
  ): Promise<void> {
    const given = (bindings ?? []).filter((binding) => binding.type !== "inherit");
    const errors = await missingResources(given, {
      accountId: owner.accountId,
      scriptName: owner.namespace === undefined ? name : undefined,
      resources: this.#resources,
      hasAssets: assets !== undefined || keptAssets !== null,
      classNames,
    });
    if (errors.length > 0) throw new ApiErrors(errors);
  }

  /** The static files of a new version, given the one before. */
  async #assets(
    owner: Owner,
    name: string,
    input: AssetsInput | undefined,
  ): Promise<(base: Version | undefined) => ScriptAssets | null> {
    if (input === undefined) return () => null;
    if ("keep" in input) {
      return (base) => {
        const kept = base?.content.assets ?? null;
        return kept === null || input.config === undefined ? kept : { ...kept, config: input.config };
      };
    }
    const manifest = await this.#manifests.complete(owner, name, input.completionToken);
    return () => ({ manifest, config: input.config });
  }

  async #stored(
    read: Read,
    scriptId: string,
    base: Version | undefined,
    { bindings = [], keepBindings = [] }: VersionInput,
  ): Promise<StoredBinding[]> {
    return storedBindings(read, this.#sealer, scriptId, base, bindings, keepBindings);
  }

  /** Refuses code that does not get as far as waiting for requests, with the bindings that it will have. */
  async #start(
    owner: Owner,
    name: string,
    { modules, facts }: Pick<InspectedCode, "modules" | "facts">,
    compatibility: Pick<VersionContent, "compatibilityDate" | "compatibilityFlags">,
    input: VersionInput,
  ): Promise<number> {
    if (modules.length === 0) return 0;
    const { read } = this.#storage;
    const { id } = this.#scripts.find(owner, name) ?? newScript(owner, name, 0);
    const bindings = await this.#stored(read, id, await store.latest(read, id), input);
    const { fault, tookMs } = await this.#startCode({
      ...facts,
      ...compatibility,
      id: "",
      accountId: owner.accountId,
      name,
      ...(owner.namespace === undefined ? {} : { namespace: owner.namespace.name }),
      modules,
      bindings: bindings.map((binding) => openBinding(this.#sealer, id, binding)),
      version: { id: "", tag: "", timestamp: new Date().toISOString() },
    });
    if (fault !== undefined) throw scriptErrors.invalid(fault);
    return tookMs;
  }

  async #add(
    trx: Write,
    script: Script,
    save: SaveScript,
    { content, codeId, deploy: isDeployed }: { content: VersionContent; codeId: string; deploy: boolean },
  ): Promise<{ script: Script; version: Version }> {
    const version: Version = {
      id: newUuid(),
      scriptId: script.id,
      number: script.versionCount + 1,
      codeId,
      content,
      createdOn: Date.now(),
    };
    const counted: Script = { ...script, versionCount: version.number, modifiedOn: version.createdOn };
    const next = isDeployed ? { ...counted, live: [{ versionId: version.id, percentage: 100 }] } : counted;
    // Rows of the version point at the script's.
    await save(next);
    await store.insert(trx, version);
    if (isDeployed && next.namespaceId === null) await deploy(trx, next, content.author, content.annotations);
    await this.#prune(trx, next);
    return { script: next, version };
  }

  /** Forgets old versions that neither run nor are among the latest. */
  async #prune(trx: Write, script: Script): Promise<void> {
    const kept = script.namespaceId === null ? versionsKept.account : versionsKept.namespace;
    const live = new Set(script.live.map(({ versionId }) => versionId));
    const old = await store.idsBeyond(trx, script.id, kept);
    const unused = old.filter((id) => !live.has(id));
    const needed = new Set<string>();
    for (const need of this.#needs) for (const id of await need(trx, unused)) needed.add(id);
    await store.remove(
      trx,
      script.id,
      unused.filter((id) => !needed.has(id)),
    );
  }
}
