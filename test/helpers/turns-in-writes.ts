import type { Storage } from "../../src/platform/storage/storage.ts";

/** Watches the writes of a storage. The result says whether other work of the process had its turn within one. */
export function turnsInWrites(storage: Storage): () => boolean {
  const write = storage.write.bind(storage);
  let hadTurn = false;
  storage.write = async (work, ...rest) =>
    write(
      async (...given) => {
        let isOpen = true;
        setImmediate(() => (hadTurn ||= isOpen));
        return work(...given).finally(() => (isOpen = false));
      },
      ...rest,
    );
  return () => hadTurn;
}
