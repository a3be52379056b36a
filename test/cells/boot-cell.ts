import { Cell } from "../../src/sandbox/cell.ts";
import { cellDefaults } from "../../src/sandbox/settings.ts";

/** Starts one cell, and says when it begins and when the cell is ready. Ends only by a signal. */
setInterval(() => {}, 60_000);
process.stdout.write("begin\n");
await Cell.boot(0, cellDefaults, () => {});
process.stdout.write("ready\n");
