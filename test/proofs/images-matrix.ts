import { check, combinations, sourceFormats, sourceImage } from "../images/matrix.ts";
import { startImagePlatform } from "../images/platform.ts";

/** Every combination of source format, fit, gravity and output format: `node test/proofs/images-matrix.ts`. */
const platform = await startImagePlatform();
const ids = new Map<string, string>();
for (const format of sourceFormats) ids.set(format, await platform.store(await sourceImage(format)));
const all = combinations();
let faults = 0;
for (const combination of all) {
  const fault = await check(platform, ids.get(combination.source)!, combination);
  if (fault === undefined) continue;
  faults += 1;
  process.stdout.write(`${Object.values(combination).join(", ")}: ${fault}\n`);
}
process.stdout.write(`${all.length} combinations, ${faults} wrong\n`);
process.exitCode = faults === 0 ? 0 : 1;
await platform.close(1000);
