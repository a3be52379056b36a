import { Migrator } from "kysely/migration";
import { initial } from "./migrations/0001-initial.ts";
import { images } from "./migrations/0004-images.ts";
import { workflows } from "./migrations/0005-workflows.ts";
import { assetsQueues } from "./migrations/0006-assets-queues.ts";
import { scripts } from "./migrations/0003-scripts.ts";
import { snippets } from "./migrations/0002-snippets.ts";
import { dnssec } from "./migrations/0007-dnssec.ts";
import { tls } from "./migrations/0008-tls.ts";
import { unusedBlobs } from "./migrations/0009-unused-blobs.ts";
import { workflowSchedules } from "./migrations/0010-workflow-schedules.ts";
import type { Storage } from "./storage.ts";

/** Brings the schema up to date. Kysely takes a lock in the database, so that nodes starting together take turns. */
export async function migrate(storage: Storage): Promise<void> {
  const migrations = {
    "0001-initial": initial(storage.engine),
    "0002-snippets": snippets,
    "0003-scripts": scripts(storage.engine),
    "0004-images": images,
    "0005-workflows": workflows(storage.engine),
    "0006-assets-queues": assetsQueues(storage.engine),
    "0007-dnssec": dnssec,
    "0008-tls": tls,
    "0009-unused-blobs": unusedBlobs(storage.engine),
    "0010-workflow-schedules": workflowSchedules,
  };
  const migrator = new Migrator({ db: storage.read, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined)
    throw new Error("The database schema could not be brought up to date.", { cause: error });
}
