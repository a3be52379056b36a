import { attackAll } from "../cells/hostile-cell/hostile-cell.ts";

/**
 * A cell that speaks its protocols wrongly on purpose: `node test/proofs/hostile-cell.ts [messages] [seed]`. Nothing of another run
 * may change, no exception be unhandled, and memory stays bounded.
 */
const [count = 100_000, seed = 1] = process.argv.slice(2).map(Number);
const grewMebibytesMax = 256;
let unhandled = 0;
for (const kind of ["uncaughtException", "unhandledRejection"] as const)
  process.on(kind, (error: unknown) => {
    unhandled++;
    console.error(kind, error);
  });
const rows = await attackAll(count, seed);
console.table(
  rows.map(({ grewMebibytes, ...row }) => ({ ...row, "memory grew by MiB": Math.round(grewMebibytes) })),
);
console.log(`seed ${seed}, unhandled exceptions: ${unhandled}`);
const isHeld =
  rows.every((row) => row.changed === 0 && row.grewMebibytes < grewMebibytesMax) && unhandled === 0;
process.exit(isHeld ? 0 : 1);
