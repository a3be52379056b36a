import type { CellSettings } from "../settings.ts";

/** Sizes in MB. Only flags that keep V8's code cache valid: without it each isolate takes 3 ms longer. */
export const v8Flags = ({ memoryBytesMax, youngBytesMax }: CellSettings): string[] => [
  `--max-old-space-size=${Math.round(memoryBytesMax / 1024 / 1024)}`,
  // workerd objects hold more memory than V8 knows of: a small young generation is collected often.
  `--max-semi-space-size=${youngBytesMax / 1024 / 1024}`,
];
