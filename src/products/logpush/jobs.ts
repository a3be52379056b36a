import { lockAccount } from "../../platform/storage/dialects.ts";
import type { Change, Storage } from "../../platform/storage/storage.ts";
import { unwitnessed } from "../../platform/storage/witness.ts";
import { clock } from "../../platform/timers/clock.ts";
import { newId } from "../../platform/util/ids.ts";
import { logpushErrors } from "./errors.ts";
import { readFilter } from "./filter.ts";
import { jobsMax, type ActiveJob, type LogpushJob, type JobInput, type JobOwner } from "./job.ts";
import * as store from "./store.ts";

const idAttemptsMax = 10;

/** The Logpush jobs of zones and accounts. Those that are enabled are in memory, in every process. */
export class LogpushJobs {
  readonly #storage: Storage;
  #active: readonly ActiveJob[] = [];
  readonly #listeners: ((active: readonly ActiveJob[]) => void)[] = [];

  constructor(storage: Storage) {
    this.#storage = storage;
    storage.onChange(
      async (changes) => {
        if (this.#isConcerned(changes)) (await this.#read())();
      },
      async () => this.#read(),
    );
  }

  async load(): Promise<void> {
    (await this.#read())();
  }

  /** The jobs that are enabled. */
  get active(): readonly ActiveJob[] {
    return this.#active;
  }

  /** Calls the listener with the enabled jobs whenever they may have changed. */
  onActive(listener: (active: readonly ActiveJob[]) => void): void {
    this.#listeners.push(listener);
  }

  async list(owner: JobOwner): Promise<LogpushJob[]> {
    return store.list(this.#storage.read, owner);
  }

  async find(owner: JobOwner, id: string): Promise<LogpushJob> {
    const job = (await this.list(owner)).find((each) => String(each.id) === id);
    if (job === undefined) throw logpushErrors.noJob(id);
    return job;
  }

  /** Throws if an owner has too many jobs for one more. */
  async checkRoom(owner: JobOwner): Promise<void> {
    if ((await this.list(owner)).length >= jobsMax) throw logpushErrors.tooMany();
  }

  /** The ids of all jobs, including disabled ones. */
  async ids(): Promise<Set<number>> {
    return new Set(await store.loadIds(this.#storage.read));
  }

  async create(owner: JobOwner, input: JobInput): Promise<LogpushJob> {
    return this.#storage.write(async (trx, changed) => {
      await lockAccount(this.#storage, trx, owner.accountId);
      if ((await store.list(trx, owner)).length >= jobsMax) throw logpushErrors.tooMany();
      const now = clock.now();
      const state = {
        lastComplete: null,
        lastError: null,
        errorMessage: null,
        failingSince: null,
        cursor: null,
      };
      for (let attempt = 0; attempt < idAttemptsMax; attempt++) {
        const job: LogpushJob = {
          ...owner,
          ...input,
          ...state,
          id: randomJobId(),
          createdOn: now,
          modifiedOn: now,
        };
        if (!(await store.insert(trx, job))) continue;
        changed(changeOf(job));
        return job;
      }
      throw new Error("No free id was found among random ones");
    });
  }

  /** Changes a job, and forgets its earlier failures. */
  async update(owner: JobOwner, id: string, change: (before: LogpushJob) => JobInput): Promise<LogpushJob> {
    return this.#storage.write(async (trx, changed) => {
      await lockAccount(this.#storage, trx, owner.accountId);
      const before = (await store.list(trx, owner)).find((each) => String(each.id) === id);
      if (before === undefined) throw logpushErrors.noJob(id);
      const job: LogpushJob = { ...before, ...change(before), failingSince: null, modifiedOn: clock.now() };
      await store.update(trx, job);
      changed(changeOf(job));
      return job;
    });
  }

  async delete(owner: JobOwner, id: string): Promise<LogpushJob> {
    return this.#storage.write(async (trx, changed) => {
      const job = (await store.list(trx, owner)).find((each) => String(each.id) === id);
      if (job === undefined) throw logpushErrors.noJob(id);
      await store.remove(trx, job.id);
      changed(changeOf(job));
      return job;
    });
  }

  /** Records a successful upload of events until a time. */
  async noteComplete(id: number, untilMs: number): Promise<void> {
    await this.#storage.write(async (trx) => store.setComplete(trx, id, Math.floor(untilMs)), unwitnessed);
  }

  /** Records that events of a job are dropped, although its uploads may succeed. */
  async noteDrops({ id }: LogpushJob, message: string): Promise<void> {
    await this.#storage.write(async (trx) => store.setDropping(trx, id, clock.now(), message), unwitnessed);
  }

  /** Records a failed upload. Disables a job whose uploads have only failed for too long. */
  async noteFailure(job: LogpushJob, message: string, disableAfterMs: number): Promise<void> {
    const now = clock.now();
    const since = await this.#storage.write(
      async (trx) => store.setFailed(trx, job.id, now, message),
      unwitnessed,
    );
    if (since === undefined || now - since < disableAfterMs) return;
    const hours = Math.floor((now - since) / 3_600_000);
    await this.#storage.write(async (trx, changed) => {
      await store.disable(
        trx,
        job.id,
        `Disabled after ${hours} hours in which all uploads failed. ${message}`,
      );
      changed(changeOf(job));
    });
  }

  /** The ids of the last rows whose events are in spools, by job. */
  async cursors(): Promise<ReadonlyMap<number, string>> {
    return store.cursors(this.#storage.read);
  }

  async setCursor(jobs: readonly LogpushJob[], cursor: string): Promise<void> {
    const ids = jobs.map(({ id }) => id);
    await this.#storage.write(async (trx) => store.setCursor(trx, ids, cursor), unwitnessed);
  }

  #isConcerned(changes: readonly Change[]): boolean {
    // With a zone or an account its jobs are deleted.
    return changes.some(
      ({ kind }) =>
        kind === "logpush_job" || (this.#active.length > 0 && (kind === "zone" || kind === "account")),
    );
  }

  async #read(): Promise<() => void> {
    const enabled = (await store.loadAll(this.#storage.read)).filter(({ isEnabled }) => isEnabled);
    const active = enabled.map((job): ActiveJob => {
      const filter = job.filter === undefined ? undefined : readFilter(job.filter);
      return { ...job, matches: filter?.matches, filterFields: filter?.fields ?? new Set() };
    });
    return () => {
      this.#active = active;
      for (const listener of this.#listeners) listener(active);
    };
  }
}

/** Below 2^31, for clients and columns with 32-bit integers. */
const randomJobId = (): number => (Number.parseInt(newId().slice(0, 8), 16) >>> 1) + 1;

const changeOf = ({ id, zoneId, accountId }: LogpushJob): Change => ({
  kind: "logpush_job",
  id: String(id),
  parentId: zoneId ?? accountId,
});
