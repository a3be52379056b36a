import { expect, vi } from "vitest";
import { startPostgres } from "../helpers/postgres.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Two nodes with one database, which both serve the script `watched`. */
export interface TwoNodes {
  nodes: [Hosting, Hosting];
  databaseUrl: string;
  stop: () => Promise<void>;
}

export async function startTwoNodes(code: string): Promise<TwoNodes> {
  const postgres = await startPostgres();
  const databaseUrl = await postgres.createDatabase();
  const first = await startHosting({ databaseUrl });
  const second = await startHosting({ databaseUrl });
  await first.deploy("watched", code);
  await vi.waitFor(async () => expect((await second.ask("watched")).status).toBe(200));
  return {
    nodes: [first, second],
    databaseUrl,
    async stop() {
      await Promise.all([first.close(1000), second.close(1000)]);
      await postgres.stop();
    },
  };
}
