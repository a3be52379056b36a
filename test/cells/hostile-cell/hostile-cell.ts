import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { random } from "./random.ts";
import type { Row } from "./beside.ts";
import { attackGateway } from "./attack-gateway.ts";
import { attackChannel } from "./attack-channel.ts";
import { attackWorkflowStream } from "./attack-workflow-stream.ts";
import { attackAnswers } from "./attack-answers.ts";

/*
 * A cell that violates each protocol on purpose, over real sockets, next to innocent runs. The messages
 * derive from a seed, so that a run can be repeated.
 */
/** All protocols, each with its share of the messages. */
export async function attackAll(
  count: number,
  seed: number,
  onRow: (row: Row) => void = () => {},
): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "hostile-cell-"));
  const next = random(seed);
  const share = Math.ceil(count / 5);
  const rows: Row[] = [];
  try {
    for (const attack of [
      async () => attackGateway(folder, share, next, false),
      async () => attackGateway(folder, share, next, true),
      async () => attackChannel(folder, share, next),
      async () => attackWorkflowStream(folder, share, next),
      async () => attackAnswers(folder, share, next),
    ]) {
      rows.push(await attack());
      onRow(rows.at(-1)!);
    }
    return rows;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
