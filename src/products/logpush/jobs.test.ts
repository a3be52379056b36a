import { beforeEach, afterEach, expect, it } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { Accounts } from "../../control/accounts/accounts.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { dataSets } from "./data-sets/data-sets.ts";
import type { JobOwner } from "./job.ts";
import { jobInput } from "./job-input.ts";
import { LogpushJobs } from "./jobs.ts";

describeStorage("Logpush jobs", (open) => {
  let storage: Storage;
  let jobs: LogpushJobs;
  let owner: JobOwner;
  const input = jobInput(
    { destination_conf: "https://logs.example", dataset: "audit_logs", enabled: true },
    "account",
    dataSets,
  );

  beforeEach(async () => {
    storage = await open();
    const accounts = new Accounts(storage);
    const user = await accounts.createUser({ email: "owner@example.com", apiKeyHash: null });
    const account = await accounts.create({ name: "a", type: "enterprise", ownerUserId: user.id });
    owner = { accountId: account.id, zoneId: undefined };
    jobs = new LogpushJobs(storage);
    await jobs.load();
  });
  afterEach(() => storage.close());

  it("are in memory while they are enabled", async () => {
    const seen: number[] = [];
    jobs.onActive((active) => seen.push(active.length));
    const made = await jobs.create(owner, input);
    expect(Number.isSafeInteger(made.id) && made.id > 0 && made.id <= 2 ** 31).toBe(true);
    expect(await jobs.find(owner, String(made.id))).toEqual(made);
    expect(jobs.active.map(({ id }) => id)).toEqual([made.id]);
    await jobs.update(owner, String(made.id), (before) => ({ ...before, isEnabled: false }));
    expect(jobs.active).toEqual([]);
    expect(await jobs.ids()).toEqual(new Set([made.id]));
    await jobs.delete(owner, String(made.id));
    expect(await jobs.list(owner)).toEqual([]);
    expect(seen).toEqual([1, 0, 0]);
    await expect(jobs.find(owner, String(made.id))).rejects.toThrow(/does not exist/);
  });

  it("keep the results of their uploads, and are disabled when these only fail for too long", async () => {
    const made = await jobs.create(owner, input);
    const now = async () => jobs.find(owner, String(made.id));
    await jobs.noteFailure(made, "It failed.", 3_600_000);
    expect(await now()).toMatchObject({ isEnabled: true, errorMessage: "It failed.", lastComplete: null });
    await jobs.noteComplete(made.id, 5000.7);
    await jobs.noteComplete(made.id, 4000);
    expect(await now()).toMatchObject({
      lastComplete: 5000,
      lastError: null,
      errorMessage: null,
      failingSince: null,
    });
    await jobs.noteFailure(made, "It failed again.", 0);
    expect(await now()).toMatchObject({
      isEnabled: false,
      errorMessage: "Disabled after 0 hours in which all uploads failed. It failed again.",
    });
    expect(jobs.active).toEqual([]);
    await jobs.update(owner, String(made.id), (before) => ({ ...before, isEnabled: true }));
    expect(await now()).toMatchObject({ isEnabled: true, failingSince: null });
  });

  it("keep a position, and are gone with their account", async () => {
    const made = await jobs.create(owner, input);
    const other = await jobs.create(owner, input);
    expect(await jobs.cursors()).toEqual(new Map());
    await jobs.setCursor([made], "01");
    expect(await jobs.cursors()).toEqual(new Map([[made.id, "01"]]));
    await jobs.setCursor([made, other], "02");
    expect((await jobs.cursors()).get(other.id)).toBe("02");
    await storage.write(async (trx, changed) => {
      await trx.deleteFrom("accounts").where("id", "=", owner.accountId).execute();
      changed({ kind: "account", id: owner.accountId });
    });
    expect([jobs.active, [...(await jobs.ids())]]).toEqual([[], []]);
  });
});
