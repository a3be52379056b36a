import { expect, it, vi } from "vitest";
import { openStorage, type Storage } from "../../src/platform/storage/storage.ts";
import { outages, startScene } from "./outages.ts";

/*
 * The primary falls silent at the worst moment: the node that follows the changes waits for a read of a listener, on a
 * connection that never tells it. Queries have a limit of two minutes here, which is longer than the test waits.
 */
const queryMsMax = 120_000;

it("a node whose listener reads from a server that falls silent follows the next one", async () => {
  const outage = outages.silentFailover;
  const scene = await startScene(outage);
  const storages: Storage[] = [];
  try {
    const [writer, node] = [
      await openStorage(scene.databaseUrl, queryMsMax),
      await openStorage(scene.databaseUrl, queryMsMax),
    ];
    storages.push(writer, node);
    const known = new Map<string, string>();
    let isSilent: Promise<void> | undefined;
    const read = async (): Promise<void> => {
      await (isSilent ??= outage.begin(scene));
      for (const { key, value } of await node.read.selectFrom("meta").selectAll().execute())
        known.set(key, value);
    };
    node.onChange(read, async () => {
      await read();
      return () => {};
    });
    await node.watch();
    node.follow({ everyMs: 500, whileNotifiedMs: 5000 });
    await writer.write(async (trx, changed) => {
      await trx.insertInto("meta").values({ key: "from-afar", value: "told" }).execute();
      changed({ kind: "zone", id: "from-afar" });
    });
    await vi.waitFor(() => expect(isSilent).toBeDefined());
    await isSilent;
    await outage.end(scene);
    await vi.waitFor(() => expect(known.get("from-afar")).toBe("told"), 40_000);
  } finally {
    await scene.stop();
    await Promise.all(storages.map((storage) => storage.close()));
  }
});
