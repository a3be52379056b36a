import { parseArgs } from "node:util";
import { manyCustomers } from "../runtime/many-customers.ts";

/**
 * Thousands of customers on one node, called in random order: no request is refused, no answer is another customer's, and memory stays
 * inside its budget. `node test/proofs/dispatch-scripts.ts --scripts 10000 --requests 20000`
 */
const { values } = parseArgs({
  options: {
    scripts: { type: "string", default: "10000" },
    requests: { type: "string", default: "20000" },
    mebibytes: { type: "string", default: "768" },
  },
});
const mebibytes = Number(values.mebibytes);
const outcome = await manyCustomers(Number(values.scripts), Number(values.requests), mebibytes, (line) =>
  process.stdout.write(`${line}\n`),
);
process.stdout.write(`${JSON.stringify(outcome, null, 2)}\n`);
const isHeld = outcome.failed + outcome.mixedUp === 0 && outcome.cellMebibytesMax <= mebibytes;
process.exit(isHeld ? 0 : 1);
