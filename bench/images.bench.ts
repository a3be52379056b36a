import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { startSelvedge } from "./lib/child.ts";
import { printGoals, printTable } from "./lib/measure.ts";
import { coldSection, ipxSection, thumbnailSection, type Section, type Stage } from "./images-cold.ts";
import { hitSection } from "./images-hits.ts";
import { photo, upload } from "./images-lib.ts";
import { crowdSection, isolationSection, memorySection } from "./images-load.ts";
import { uploadSection } from "./images-uploads.ts";
import type { Ready } from "../src/server.ts";

/**
 * Images beside the bare library and others that do the same: CPU time first. BENCH_SECTIONS=cold,hits runs only these
 * sections.
 */
const sections: Record<string, (stage: Stage, ready: Ready) => Promise<Section>> = {
  cold: coldSection,
  ipx: ipxSection,
  thumbnail: thumbnailSection,
  hits: hitSection,
  crowd: crowdSection,
  isolation: isolationSection,
  memory: memorySection,
  uploads: uploadSection,
};
const wanted = process.env["BENCH_SECTIONS"]?.split(",") ?? Object.keys(sections);

const folder = mkdtempSync(join(tmpdir(), "selvedge-photo-"));
const path = join(folder, "photo.jpg");
const bytes = await photo();
writeFileSync(path, bytes);
const smallPath = join(folder, "small.jpg");
const smallBytes = await sharp(bytes).resize(200).jpeg().toBuffer();
writeFileSync(smallPath, smallBytes);
process.stdout.write(`the photograph: 4000 × 3000, ${bytes.length} bytes\n`);
for (const name of wanted) {
  // Each has a platform of its own: what one leaves in memory is not measured by the next.
  const selvedge = await startSelvedge();
  const urlOf = async (image: Buffer): Promise<string> =>
    `${selvedge.ready.delivery}/${selvedge.ready.account_hash}/${await upload(selvedge.ready, image)}`;
  const small = { url: await urlOf(smallBytes), path: smallPath };
  const stage = { pid: selvedge.pid, url: await urlOf(bytes), path, small };
  const section = await sections[name]!(stage, selvedge.ready);
  if (section.rows.length > 0) printTable(section.headings, section.rows);
  if (section.goals.length > 0) printGoals(section.goals);
  await selvedge.stop();
}
rmSync(folder, { recursive: true, force: true });
