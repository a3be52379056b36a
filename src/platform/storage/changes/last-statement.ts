import type { KyselyPlugin } from "kysely";
import type { Write } from "../storage.ts";

/**
 * A transaction that refuses statements once its end is reached: the statement that logs its changes must be the
 * last one, because the row that it locks keeps all other nodes from writing.
 */
export function lastStatement(trx: Write): { guarded: Write; end: TransactionEnd } {
  const end = new TransactionEnd();
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      end.refuseAfter("a statement");
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  return { guarded: trx.withPlugin(plugin), end };
}

class TransactionEnd {
  isReached = false;

  /** Throws if the end is reached. */
  refuseAfter(what: string): void {
    if (this.isReached) throw new Error(`Expected the end of the transaction but received ${what}`);
  }
}
