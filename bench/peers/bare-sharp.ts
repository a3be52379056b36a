import { readFile } from "node:fs/promises";
import sharp from "sharp";

/** Runs sharp directly, for the jobs that its parent process sends. */
export interface BareJob {
  path: string;
  width: number;
  format: "jpeg" | "baseline-jpeg" | "webp" | "avif";
  /** Selvedge's encoder settings, or the library's defaults. */
  settings: "ours" | "defaults";
  quality?: number;
}

sharp.concurrency(1);
sharp.cache(false);
const ours = {
  jpeg: { quality: 85, progressive: true, chromaSubsampling: "4:2:0" },
  "baseline-jpeg": { quality: 85, progressive: false, chromaSubsampling: "4:2:0" },
  webp: { quality: 85, effort: 2 },
  avif: { quality: 70, effort: 0, chromaSubsampling: "4:2:0" },
} as const;
const defaults = { jpeg: {}, "baseline-jpeg": {}, webp: { quality: 80 }, avif: {} } as const;

async function run({ path, width, format, settings, quality }: BareJob): Promise<Buffer> {
  const own = settings === "ours" ? ours[format] : defaults[format];
  const options = quality === undefined ? own : { ...own, quality };
  const input = settings === "ours" ? path : await readFile(path);
  return sharp(input, { failOn: "error", sequentialRead: true })
    .autoOrient()
    .resize({ width })
    .toFormat(format === "baseline-jpeg" ? "jpeg" : format, options)
    .toBuffer();
}

process.on("message", ({ id, job }: { id: number; job: BareJob }) => {
  run(job).then(
    (bytes) => process.send!({ id, length: bytes.length }),
    (error: unknown) => process.send!({ id, error: String(error) }),
  );
});
process.on("disconnect", () => process.exit(0));
