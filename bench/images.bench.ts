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

/**
 * Compares image delivery with the bare library and other servers, by CPU time first. BENCH_SECTIONS=cold,hits runs
 * only these sections. Each section starts a new platform with default settings, and some a second one with others.
 */
const sections: Record<string, (stage: Stage, start: typeof startStage) => Promise<Section>> = {
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
  const stage = await startStage();
  const section = await sections[name]!(stage, startStage);
  if (section.rows.length > 0) printTable(section.headings, section.rows);
  if (section.goals.length > 0) printGoals(section.goals);
  await stage.stop();
}
rmSync(folder, { recursive: true, force: true });

async function startStage(...args: string[]): Promise<Stage> {
  const selvedge = await startSelvedge(args);
  const { pid, ready } = selvedge;
  const urlOf = async (image: Buffer): Promise<string> =>
    `${ready.delivery}/${ready.account_hash}/${await upload(ready, image)}`;
  const small = { url: await urlOf(smallBytes), path: smallPath };
  return { pid, ready, stop: () => selvedge.stop(), url: await urlOf(bytes), path, small };
}
