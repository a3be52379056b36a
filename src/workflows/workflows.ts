import { readCron, type Timetable } from "../schedules/cron.ts";
import type { Scripts } from "../scripts/scripts.ts";
import type { Storage } from "../storage/storage.ts";
import { newUuid } from "../util/ids.ts";
import * as store from "./store-workflows.ts";
import {
  workflowErrors,
  workflowLimits,
  type Retention,
  type Workflow,
  type WorkflowVersion,
} from "./workflow.ts";

export interface WorkflowInput {
  scriptName: string;
  className: string;
  stepsMax: number | null;
  retention: Retention;
  crons: readonly string[];
}

/** The workflows of all accounts, in memory, and their versions. */
export class Workflows {
  readonly #storage: Storage;
  readonly #scripts: Pick<Scripts, "live">;
  readonly #versions = new Map<number, WorkflowVersion>();
  /** The newest version of each workflow, for each code that runs. */
  readonly #current = new Map<string, Promise<WorkflowVersion>>();
  #byRid = new Map<number, Workflow>();
  #byName = new Map<string, Workflow>();
  #settings = new Map<string, Retention>();
  /** By expression. */
  #timetables = new Map<string, Timetable>();

  constructor(storage: Storage, scripts: Pick<Scripts, "live">) {
    this.#storage = storage;
    this.#scripts = scripts;
    storage.onChange(async (changes) => {
      if (changes.some(({ kind }) => kind === "workflow" || kind === "account")) await this.load();
    });
  }

  async load(): Promise<void> {
    const { workflows, settings } = await store.loadAll(this.#storage.read);
    for (const cron of workflows.flatMap(({ crons }) => crons)) {
      const timetable = this.#timetables.get(cron) ?? (await readCron(cron));
      // It could be read when it was saved.
      if (typeof timetable === "string") throw new Error(`${cron}: ${timetable}`);
      this.#timetables.set(cron, timetable);
    }
    this.#byRid = new Map(workflows.map((workflow) => [workflow.rid, workflow]));
    this.#byName = new Map(
      workflows.map((workflow) => [nameKey(workflow.accountId, workflow.name), workflow]),
    );
    this.#settings = settings;
  }

  /** By name. */
  list(accountId: string): Workflow[] {
    return [...this.#byRid.values()].filter((workflow) => workflow.accountId === accountId);
  }

  /** What makes instances by itself. */
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
    const now = Date.now();
    await this.#storage.write(async (trx, changed) => {
      const id = newUuid();
      await store.put(trx, { id, accountId, name, createdOn: now, modifiedOn: now, ...input });
      changed({ kind: "workflow", id: name, parentId: accountId });
    });
    const workflow = this.get(accountId, name);
    return { workflow, version: await this.latestVersion(workflow) };
  }

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

  /** What an instance that begins now runs: the script as it is deployed. Other code makes another version. */
  async latestVersion(workflow: Workflow): Promise<WorkflowVersion> {
    const { rid, accountId, scriptName, className, stepsMax } = workflow;
    const live = this.#scripts.live({ accountId }, scriptName);
    if (live === undefined) throw workflowErrors.noScript(scriptName);
    const key = JSON.stringify([rid, scriptName, live.versionId, className, stepsMax]);
    let current = this.#current.get(key);
    if (current === undefined) {
      const made = { workflowRid: rid, scriptName, scriptVersion: live.versionId, className, stepsMax };
      current = this.#findOrMake(made);
      this.#current.set(key, current);
      current.catch(() => this.#current.delete(key));
    }
    return current;
  }

  async latestVersionOf(workflowRid: number): Promise<WorkflowVersion> {
    const workflow = this.#byRid.get(workflowRid);
    if (workflow === undefined) throw workflowErrors.workflowNotFound(String(workflowRid));
    return this.latestVersion(workflow);
  }

  /** By its number, with the name of its workflow. Versions never change. */
  async version(rid: number): Promise<{ version: WorkflowVersion; workflow: Workflow } | undefined> {
    let version = this.#versions.get(rid);
    if (version === undefined) {
      version = await store.findVersion(this.#storage.read, rid);
      if (version !== undefined) this.#versions.set(rid, version);
    }
    const workflow = version && this.#byRid.get(version.workflowRid);
    return version === undefined || workflow === undefined ? undefined : { version, workflow };
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
      const timetable = crons.indexOf(cron) < i ? "it is given twice" : await readCron(cron);
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
        `Expected at most ${workflowLimits.schedulesMax} schedules of all workflows of the account but these would be ${count}`,
        "/body/schedules",
      );
  }

  async #findOrMake(wanted: Omit<WorkflowVersion, "rid" | "id" | "createdOn">): Promise<WorkflowVersion> {
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
    return this.#storage.write(async (trx) =>
      store.insertVersion(trx, { ...wanted, id: newUuid(), createdOn: Date.now() }),
    );
  }
}

const nameKey = (accountId: string, name: string): string => `${accountId}/${name}`;
