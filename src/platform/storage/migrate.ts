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
import { lastingNumbers } from "./migrations/0011-lasting-numbers.ts";
import { zoneAuthority } from "./migrations/0012-zone-authority.ts";
import { queueLeases } from "./migrations/0013-queue-leases.ts";
import { members } from "./migrations/0014-members.ts";
import type { Storage } from "./storage.ts";

/**
 * Migrates the schema to the current version. Kysely locks the database, so that only one starting node
 * migrates at a time.
 */
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
    "0011-lasting-numbers": lastingNumbers(storage.engine),
    "0012-zone-authority": zoneAuthority,
    "0013-queue-leases": queueLeases,
    "0014-members": members,
  };
  const migrator = new Migrator({ db: storage.read, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw new Error("The migration of the database schema failed.", { cause: error });
}
