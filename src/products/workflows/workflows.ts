import { LRUCache } from "lru-cache";
import { readCron, type Timetable } from "../schedules/cron.ts";
import type { Scripts } from "../../workers/scripts/scripts.ts";
import { isForeignKeyViolation } from "../../platform/storage/dialects.ts";
import { FreshReads } from "../../platform/storage/changes/fresh-reads.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { newUuid } from "../../platform/util/ids.ts";
import { LoadingCache, entriesMax } from "../../platform/util/loading-cache.ts";
import * as store from "./store/store-workflows.ts";
import { workflowLimits, type Retention, type Workflow, type WorkflowVersion } from "./workflow.ts";
import { workflowErrors } from "./errors.ts";
import { clock } from "../../platform/timers/clock.ts";

export interface WorkflowInput {
  scriptName: string;
  className: string;
  stepsMax: number | null;
  retention: Retention;
  crons: readonly string[];
}

const versionsMax = 10_000;

interface Everything {
  workflows: readonly Workflow[];
  settings: Map<string, Retention>;
  timetables: Map<string, Timetable>;
}

/** The workflows of all accounts, kept in memory, and their versions. */
export class Workflows {
  readonly #storage: Storage;
  readonly #scripts: Pick<Scripts, "live">;
  readonly #versions = new LoadingCache<number, WorkflowVersion>(new LRUCache(entriesMax(versionsMax)));
  /** The newest version of each workflow, keyed by workflow and deployed code. */
  readonly #current = new LoadingCache<string, WorkflowVersion>(new LRUCache(entriesMax(versionsMax)));
  readonly #goneListeners: (() => void)[] = [];
  readonly #reads = new FreshReads(
    () => this.#read(),
    (everything) => this.#replaceAll(everything),
  );
  #byRid = new Map<number, Workflow>();
  #byName = new Map<string, Workflow>();
  #settings = new Map<string, Retention>();
  /** Parsed schedules by cron expression. */
  #timetables = new Map<string, Timetable>();

  constructor(storage: Storage, scripts: Pick<Scripts, "live">) {
    this.#storage = storage;
    this.#scripts = scripts;
    storage.onChange(
      async (changes) => {
        if (changes.some(({ kind }) => kind === "workflow" || kind === "account")) await this.load();
      },
      async () => {
        const replace = await this.#reads.reload();
        return () => {
          replace();
          this.#current.forget();
        };
      },
    );
  }

  async load(): Promise<void> {
    await this.#reads.load();
  }

  async #read(): Promise<Everything> {
    const { workflows, settings } = await store.loadAll(this.#storage.read);
    const timetables = new Map<string, Timetable>();
    for (const cron of workflows.flatMap(({ crons }) => crons)) {
      const timetable = this.#timetables.get(cron) ?? (await readCron(cron));
      // The expression was valid when it was saved.
      if (typeof timetable === "string") throw new Error(`${cron}: ${timetable}`);
      timetables.set(cron, timetable);
    }
    return { workflows, settings, timetables };
  }

  #replaceAll({ workflows, settings, timetables }: Everything): void {
    this.#timetables = timetables;
    const before = this.#byRid;
    this.#byRid = new Map(workflows.map((workflow) => [workflow.rid, workflow]));
    this.#byName = new Map(
      workflows.map((workflow) => [nameKey(workflow.accountId, workflow.name), workflow]),
    );
    this.#settings = settings;
    if ([...before.keys()].every((rid) => this.#byRid.has(rid))) return;
    const isGone = ({ workflowRid }: WorkflowVersion): boolean => !this.#byRid.has(workflowRid);
    this.#versions.forget(isGone);
    this.#current.forget(isGone);
    for (const listener of this.#goneListeners) listener();
  }

  /** Calls `listener` after workflows have been deleted, on any node. */
  onGone(listener: () => void): void {
    this.#goneListeners.push(listener);
  }

  /** Sorted by name. */
  list(accountId: string): Workflow[] {
    return [...this.#byRid.values()].filter((workflow) => workflow.accountId === accountId);
  }

  /** The schedules of all workflows. */
  scheduled(): { workflow: Workflow; cron: string; timetable: Timetable }[] {
    return [...this.#byRid.values()].flatMap((workflow) => this.schedules(workflow));
  }

  schedules(workflow: Workflow): { workflow: Workflow; cron: string; timetable: Timetable }[] {
    return workflow.crons.map((cron) => ({ workflow, cron, timetable: this.#timetables.get(cron)! }));
  }

  find(accountId: string, name: string): Workflow | undefined {
    return this.#byName.get(nameKey(accountId, name));
  }

  get(accountId: string, name: string): Workflow {
    const workflow = this.find(accountId, name);
    if (workflow === undefined) throw workflowErrors.workflowNotFound(name);
    return workflow;
  }

  async put(
    accountId: string,
    name: string,
    input: WorkflowInput,
  ): Promise<{ workflow: Workflow; version: WorkflowVersion }> {
    if (this.#scripts.live({ accountId }, input.scriptName) === undefined)
      throw workflowErrors.noScript(input.scriptName);
    await this.#checkCrons(accountId, name, input.crons);
    const now = clock.now();
    await this.#storage.write(async (trx, changed) => {
      const id = newUuid();
      await store.put(trx, { id, accountId, name, createdOn: now, modifiedOn: now, ...input });
      changed({ kind: "workflow", id: name, parentId: accountId });
    });
    const workflow = this.get(accountId, name);
    return { workflow, version: await this.latestVersion(workflow) };
  }

  /** Deletes a workflow, so that none of its instances starts any more. The caller removes the instances. */
  async delete(workflow: Workflow): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.remove(trx, workflow.rid);
      changed({ kind: "workflow", id: workflow.name, parentId: workflow.accountId });
    });
  }

  settings(accountId: string): Retention {
    return this.#settings.get(accountId) ?? { successMs: null, errorMs: null };
  }

  async changeSettings(accountId: string, change: Partial<Retention>): Promise<Retention> {
    const retention = { ...this.settings(accountId), ...change };
    await this.#storage.write(async (trx, changed) => {
      await store.putSettings(trx, accountId, retention);
      changed({ kind: "workflow", id: accountId, parentId: accountId });
    });
    return retention;
  }

  /**
   * The version for an instance that starts now: the deployed code of the script. New code creates a new
   * version.
   */
  async latestVersion(workflow: Workflow): Promise<WorkflowVersion> {
    const { rid, accountId, scriptName, className, stepsMax } = workflow;
    const live = this.#scripts.live({ accountId }, scriptName);
    if (live === undefined) throw workflowErrors.noScript(scriptName);
    const key = JSON.stringify([rid, scriptName, live.versionId, className, stepsMax]);
    const made = { workflowRid: rid, scriptName, scriptVersion: live.versionId, className, stepsMax };
    const current = await this.#current.get(key, async () => this.#findOrMake(made));
    if (current === undefined) throw workflowErrors.workflowNotFound(workflow.name);
    return current;
  }

  async latestVersionOf(workflowRid: number): Promise<WorkflowVersion> {
    const workflow = this.#byRid.get(workflowRid);
    if (workflow === undefined) throw workflowErrors.workflowNotFound(String(workflowRid));
    return this.latestVersion(workflow);
  }

  /**
   * Finds a version and its workflow by the version's row id; undefined when deleted. Versions never change.
   */
  async version(rid: number): Promise<{ version: WorkflowVersion; workflow: Workflow } | undefined> {
    const version = await this.#versions.get(rid, async () => store.findVersion(this.#storage.read, rid));
    if (version === undefined) return undefined;
    // Another node may have just created the workflow.
    if (!this.#byRid.has(version.workflowRid)) await this.load();
    const workflow = this.#byRid.get(version.workflowRid);
    return workflow && { version, workflow };
  }

  /** Queries the database, since memory may be outdated. */
  async exists({ rid }: Workflow): Promise<boolean> {
    return store.exists(this.#storage.read, rid);
  }

  async listVersions(workflow: Workflow, page: { page: number; per_page: number }) {
    return store.versions(this.#storage.read, workflow.rid, {
      limit: page.per_page,
      offset: (page.page - 1) * page.per_page,
    });
  }

  async getVersion(workflow: Workflow, id: string): Promise<WorkflowVersion> {
    const version = await store.findVersionById(this.#storage.read, workflow.rid, id);
    if (version === undefined) throw workflowErrors.versionNotFound();
    return version;
  }

  async #checkCrons(accountId: string, name: string, crons: readonly string[]): Promise<void> {
    for (const [i, cron] of crons.entries()) {
      const timetable = crons.indexOf(cron) < i ? "it is listed twice" : await readCron(cron);
      if (typeof timetable === "string")
        throw workflowErrors.invalid(
          `Invalid cron expression ${JSON.stringify(cron)}: ${timetable}`,
          `/body/schedules/${i}/cron`,
        );
    }
    const others = this.list(accountId).filter((workflow) => workflow.name !== name);
    const count = others.reduce((sum, each) => sum + each.crons.length, crons.length);
    if (crons.length > 0 && count > workflowLimits.schedulesMax)
      throw workflowErrors.invalid(
        `Expected at most ${workflowLimits.schedulesMax} schedules in all workflows of the account but received ${count}`,
        "/body/schedules",
      );
  }

  /** Undefined when the workflow has been deleted. */
  async #findOrMake(
    wanted: Omit<WorkflowVersion, "rid" | "id" | "createdOn">,
  ): Promise<WorkflowVersion | undefined> {
    const { versions } = await store.versions(this.#storage.read, wanted.workflowRid, {
      limit: 10,
      offset: 0,
    });
    const known = versions.find((version) =>
      (["scriptName", "scriptVersion", "className", "stepsMax"] as const).every(
        (field) => version[field] === wanted[field],
      ),
    );
    if (known !== undefined) return known;
    return this.#storage
      .write(async (trx) => store.insertVersion(trx, { ...wanted, id: newUuid(), createdOn: clock.now() }))
      .catch((error: unknown) => {
        if (isForeignKeyViolation(error)) return undefined;
        throw error;
      });
  }
}

const nameKey = (accountId: string, name: string): string => `${accountId}/${name}`;
