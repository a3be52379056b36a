import { DomainErrors } from "../../../platform/domain-error.ts";
import type { ScriptAssets } from "../../assets/config.ts";
import type { Read, Storage, Write } from "../../../platform/storage/storage.ts";
import { newUuid } from "../../../platform/util/ids.ts";
import { missingResources } from "./bindings.ts";
import type { Binding } from "../../bindings.ts";
import type { BindingRegistry } from "../../binding-registry.ts";
import { deploy } from "./deployments.ts";
import { inspected, type InspectedCode } from "./code.ts";
import type { Author, ScriptOwner, Script, StoredBinding, ScriptVersion, VersionContent } from "../script.ts";
import { newScript, type SaveScript, type Scripts } from "../scripts.ts";
import { objectErrors } from "./object-errors.ts";
import type { Reconciliation } from "./object-exports.ts";
import { planWithoutObjects, type ObjectChange, type PlanObjects } from "./object-classes.ts";
import type { Sealer } from "./sealing.ts";
import * as store from "./store-versions.ts";
import { openBinding, storedBindings } from "./stored-bindings.ts";
import { scriptErrors, scriptNotFound } from "../errors.ts";
import {
  withSettings,
  type AssetManifests,
  type AssetsInput,
  type Revision,
  type Start,
  type VersionUpload,
  type VersionInput,
} from "./version-input.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** The public API's default for uploads: the runtime behaves as on that day. */
export const defaultCompatibilityDate = "2021-11-02";
/**
 * Number of the newest versions that are kept: for rollbacks of accounts' scripts, and for runs of customers' scripts.
 * Older versions are kept while they are live.
 */
const versionsKept = { account: 100, namespace: 2 };

/** Whether the code must be started again, because the code or the behaviour of its runtime has changed. */
const needsNewStart = ({ code, compatibilityDate, compatibilityFlags }: Revision): boolean =>
  code !== undefined || compatibilityDate !== undefined || compatibilityFlags !== undefined;

interface AddedVersion {
  script: Script;
  version: ScriptVersion;
  /** The changes that `exports` of the upload made. */
  reconciliation: Reconciliation | undefined;
}

/** Creates versions of scripts. A version never changes; every change of a script creates a new one. */
export class Versions {
  readonly #storage: Storage;
  readonly #scripts: Scripts;
  readonly #sealer: Sealer;
  readonly #bindings: BindingRegistry;
  readonly #manifests: AssetManifests;
  readonly #needs: ((trx: Write, versionIds: readonly string[]) => Promise<readonly string[]>)[] = [];
  readonly #startCode: Start;
  /** Set by the capability of objects, which this room cannot import. */
  planObjects: PlanObjects = planWithoutObjects;
  /** Maximum size of an upload. */
  readonly uploadBytesMax: number;

  constructor(
    storage: Storage,
    scripts: Scripts,
    sealer: Sealer,
    bindings: BindingRegistry,
    manifests: AssetManifests,
    startCode: Start,
    uploadBytesMax: number,
  ) {
    this.#storage = storage;
    this.#scripts = scripts;
    this.#sealer = sealer;
    this.#bindings = bindings;
    this.#manifests = manifests;
    this.#startCode = startCode;
    this.uploadBytesMax = uploadBytesMax;
  }

  /** Registers a function that returns the versions that are still needed, for example by running workflows. */
  onForget(need: (trx: Write, versionIds: readonly string[]) => Promise<readonly string[]>): void {
    this.#needs.push(need);
  }

  /** The live version; of two, the first. */
  async current(script: Script): Promise<ScriptVersion> {
    const id = script.live[0]?.versionId;
    const version = id === undefined ? undefined : await store.find(this.#storage.read, id);
    if (version === undefined) throw scriptErrors.noVersions();
    return version;
  }

  /** As `current`, for many scripts. */
  async currentOf(scripts: readonly Script[]): Promise<{ script: Script; version: ScriptVersion }[]> {
    const ids = scripts.flatMap(({ live }) => live[0]?.versionId ?? []);
    const versions = await store.findMany(this.#storage.read, ids);
    return scripts.flatMap((script) => {
      const version = versions.get(script.live[0]?.versionId ?? "");
      return version === undefined ? [] : [{ script, version }];
    });
  }

  async get(script: Script, id: string): Promise<ScriptVersion> {
    const version = await store.find(this.#storage.read, id);
    if (version?.scriptId !== script.id) throw scriptErrors.versionNotFound(id);
    return version;
  }

  async latest(script: Script): Promise<ScriptVersion> {
    const version = await store.latest(this.#storage.read, script.id);
    if (version === undefined) throw scriptErrors.noVersions();
    return version;
  }

  async delete(owner: ScriptOwner, name: string, id: string): Promise<void> {
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
  ): Promise<{ versions: ScriptVersion[]; totalCount: number }> {
    const [versions, totalCount] = await Promise.all([
      store.list(this.#storage.read, script.id, page.per_page, (page.page - 1) * page.per_page),
      store.count(this.#storage.read, script.id),
    ]);
    return { versions, totalCount };
  }

  /** The static assets of a version. */
  async assetsOf(id: string): Promise<ScriptAssets | undefined> {
    return (await store.find(this.#storage.read, id))?.content.assets ?? undefined;
  }

  async codeOf(version: ScriptVersion): Promise<store.StoredModule[]> {
    return store.modules(this.#storage.read, version.codeId);
  }

  /** Stores new code as a new version, and deploys it unless `deploy` is false. */
  async upload(
    owner: ScriptOwner,
    name: string,
    upload: VersionUpload,
    author: Author,
    options: { deploy: boolean },
  ): Promise<AddedVersion> {
    const code = await inspected(owner.accountId, upload.code);
    await this.#checkBindings(owner, name, upload, code.exportNames);
    const assets = await this.#assets(owner, name, upload.assets);
    const compatibility = {
      compatibilityDate: upload.compatibilityDate ?? defaultCompatibilityDate,
      compatibilityFlags: upload.compatibilityFlags ?? [],
    };
    const startupTimeMs = await this.#start(owner, name, code, compatibility, upload);
    if ((upload.migrations ?? upload.exports) !== undefined && !options.deploy)
      throw objectErrors.migrationInVersion();
    return this.#scripts.change(owner, name, async (trx, current, save, changed) => {
      if (current === undefined && !options.deploy) throw scriptNotFound(owner, name);
      const now = clock.now();
      const script = current ?? newScript(owner, name, now);
      const base = current && (await store.latest(trx, script.id));
      const { migrations, exports, codeUpdateDelayMs = 0 } = upload;
      const transfers = base?.content.objectTransfers ?? {};
      const { exportNames } = code;
      const bindings = await this.#stored(trx, script.id, base, upload);
      const classes = { migrations, exports, transfers, exportNames };
      const objects = { trx, changed, owner, script, bindings, ...classes };
      const content: VersionContent = {
        ...code.inspected,
        ...compatibility,
        startupTimeMs,
        bindings,
        codeUpdateDelayMs,
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
      const added = await this.#add(edited, save, objects, { content, codeId, deploy: options.deploy });
      await store.insertCode(trx, script.id, codeId, code);
      return added;
    });
  }

  /**
   * Creates a version from the latest one, with changed settings. With deployment, the latest version must be
   * live: otherwise changing a setting would deploy code that no caller has deployed. New code replaces that of the
   * live version (`of`), which after a rollback is not the latest.
   */
  async revise(
    owner: ScriptOwner,
    name: string,
    author: Author,
    input: (base: ScriptVersion) => Revision,
    of: "latest" | "live" = "latest",
  ): Promise<{ script: Script; version: ScriptVersion }> {
    for (;;) {
      const script = this.#scripts.get(owner, name);
      const isOfLive = of === "live" && script.live.length > 0;
      const base = isOfLive ? await this.current(script) : await this.latest(script);
      const revised = await this.#revise(owner, name, author, base, { ...input(base), of });
      // A concurrent request created or deployed a version, so try again from that one.
      if (revised !== undefined) return revised;
    }
  }

  async #revise(
    owner: ScriptOwner,
    name: string,
    author: Author,
    base: ScriptVersion,
    change: Revision & { of: "latest" | "live" },
  ): Promise<{ script: Script; version: ScriptVersion } | undefined> {
    const { content } = base;
    const { deploy: isDeployed = true } = change;
    const code = change.code === undefined ? undefined : await inspected(owner.accountId, change.code);
    const classNames =
      code === undefined ? new Set(content.namedHandlers.map((each) => each.name)) : code.exportNames;
    await this.#checkBindings(owner, name, change, classNames, content.assets);
    const assets = await this.#assets(owner, name, change.assets ?? { keep: true, config: undefined });
    const compatibility = {
      compatibilityDate: change.compatibilityDate ?? content.compatibilityDate,
      compatibilityFlags: change.compatibilityFlags ?? content.compatibilityFlags,
    };
    let { startupTimeMs } = content;
    if (needsNewStart(change)) {
      const runs = code ?? { modules: await this.codeOf(base), inspected: content };
      const bindings =
        change.bindings ?? content.bindings.map(({ name }) => ({ type: "inherit" as const, name }));
      startupTimeMs = await this.#start(owner, name, runs, compatibility, { ...change, bindings }, base);
    }
    return this.#scripts.change(owner, name, async (trx, current, save, changed) => {
      const latest = current && (await store.latest(trx, current.id));
      const baseNow = (change.of === "live" ? current?.live[0]?.versionId : undefined) ?? latest?.id;
      if (current === undefined || latest === undefined || baseNow !== base.id) return undefined;
      if (isDeployed && (current.live.length !== 1 || current.live[0]!.versionId !== base.id))
        throw scriptErrors.latestNotDeployed();
      const bindings =
        change.bindings === undefined ? content.bindings : await this.#stored(trx, current.id, base, change);
      const exportNames = code?.exportNames;
      const transfers = latest.content.objectTransfers ?? {};
      const classes = { migrations: undefined, exports: undefined, transfers, exportNames };
      const objects = { trx, changed, owner, script: current, bindings, ...classes };
      const revised: VersionContent = {
        ...content,
        ...withSettings(content, change),
        ...compatibility,
        startupTimeMs,
        bindings,
        assets: assets(base),
        author,
        ...code?.inspected,
      };
      const codeId = code === undefined ? base.codeId : newUuid();
      const edited: Script = {
        ...current,
        tags: change.tags ?? current.tags,
        settings: { ...current.settings, ...change.settings },
      };
      const added = await this.#add(edited, save, objects, { content: revised, codeId, deploy: isDeployed });
      if (code !== undefined) await store.insertCode(trx, current.id, codeId, code);
      return added;
    });
  }

  /** Throws one error for all bindings to missing resources. */
  async #checkBindings(
    owner: ScriptOwner,
    name: string,
    { bindings, assets }: VersionInput,
    classNames: ReadonlySet<string> | undefined,
    keptAssets: ScriptAssets | null = null,
  ): Promise<void> {
    const given = (bindings ?? []).filter((binding) => binding.type !== "inherit");
    const errors = await missingResources(given, this.#bindings, {
      accountId: owner.accountId,
      scriptName: owner.namespace === undefined ? name : undefined,
      hasAssets: assets !== undefined || keptAssets !== null,
      classNames,
    });
    if (errors.length > 0) throw new DomainErrors(errors);
  }

  /** The bindings of an upload as its script would see them. `base` is the version that it inherits from. */
  async opened(scriptId: string, base: ScriptVersion | undefined, input: VersionInput): Promise<Binding[]> {
    const bindings = await this.#stored(this.#storage.read, scriptId, base, input);
    return bindings.map((binding) => openBinding(this.#sealer, scriptId, binding));
  }

  /** The static assets of a new version. */
  async #assets(
    owner: ScriptOwner,
    name: string,
    input: AssetsInput | undefined,
  ): Promise<(base: ScriptVersion | undefined) => ScriptAssets | null> {
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
    base: ScriptVersion | undefined,
    { bindings = [], keepBindings = [] }: VersionInput,
  ): Promise<StoredBinding[]> {
    return storedBindings(read, this.#sealer, scriptId, base, bindings, keepBindings);
  }

  /** Throws if the code does not start with its new bindings. */
  async #start(
    owner: ScriptOwner,
    name: string,
    { modules, inspected }: Pick<InspectedCode, "modules" | "inspected">,
    compatibility: Pick<VersionContent, "compatibilityDate" | "compatibilityFlags">,
    input: VersionInput,
    base?: ScriptVersion,
  ): Promise<number> {
    if (modules.length === 0) return 0;
    const { id } = this.#scripts.find(owner, name) ?? newScript(owner, name, 0);
    const from = base ?? (await store.latest(this.#storage.read, id));
    const { fault, tookMs } = await this.#startCode({
      ...inspected,
      ...compatibility,
      id: "",
      scriptId: id,
      accountId: owner.accountId,
      name,
      ...(owner.namespace === undefined ? {} : { namespace: owner.namespace.name }),
      modules,
      bindings: await this.opened(id, from, input),
      version: { id: "", tag: "", timestamp: new Date(clock.now()).toISOString() },
    });
    if (fault !== undefined) throw scriptErrors.invalid(fault);
    return tookMs;
  }

  async #add(
    script: Script,
    save: SaveScript,
    objects: ObjectChange,
    {
      content: given,
      codeId,
      deploy: isDeployed,
    }: { content: VersionContent; codeId: string; deploy: boolean },
  ): Promise<AddedVersion> {
    const { trx } = objects;
    const plan = await this.planObjects(objects);
    const { bindings, classes: objectClasses, transfers: objectTransfers, reconciliation } = plan;
    const content = { ...given, bindings, objectClasses, objectTransfers };
    const version: ScriptVersion = {
      id: newUuid(),
      scriptId: script.id,
      number: script.versionCount + 1,
      codeId,
      content,
      createdOn: clock.now(),
    };
    const counted: Script = {
      ...script,
      versionCount: version.number,
      modifiedOn: version.createdOn,
      migrationTag: plan.migrationTag,
    };
    const next = isDeployed ? { ...counted, live: [{ versionId: version.id, percentage: 100 }] } : counted;
    // Rows of the version refer to the row of the script.
    await save(next);
    await plan.write();
    await store.insert(trx, version);
    if (isDeployed && next.namespaceId === null) await deploy(trx, next, content.author, content.annotations);
    await this.#prune(trx, next);
    return { script: next, version, reconciliation };
  }

  /** Deletes versions that are neither live nor among the latest. */
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
