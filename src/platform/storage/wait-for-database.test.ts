import { expect, it } from "vitest";
import { freePort } from "../../../test/helpers/free-port.ts";
import { startPostgres } from "../../../test/helpers/postgres.ts";
import { openStorage } from "./storage.ts";
import { waitForDatabase } from "./wait-for-database.ts";

it("a start waits for a server that becomes available, and not for one that refuses", async () => {
  const postgres = await startPostgres();
  try {
    const url = await postgres.createDatabase();
    await postgres.crash();
    const warnings: string[] = [];
    const warn = (_fields: unknown, message: string): number => warnings.push(message);
    const waiting = waitForDatabase(() => openStorage(url), 60, { warn } as never);
    await expect.poll(() => warnings).toEqual(["waiting for the database"]);
    await postgres.start();
    await (await waiting).close();

    let attempts = 0;
    const open = async (at: string): ReturnType<typeof openStorage> => {
      attempts++;
      return openStorage(at);
    };
    const refused = url.replace("selvedge:selvedge@", "selvedge:wrong@");
    await expect(waitForDatabase(() => open(refused), 60, { warn } as never)).rejects.toThrow();
    await expect(
      waitForDatabase(() => open("sqlite:/etc/passwd/a.db"), 60, { warn } as never),
    ).rejects.toThrow();
    const away = `postgres://127.0.0.1:${await freePort()}/none`;
    await expect(waitForDatabase(() => open(away), 0, { warn } as never)).rejects.toThrow("not available");
    expect(attempts).toBe(3);
  } finally {
    await postgres.stop();
  }
});
