/** A file of the built console, in base64. `gzip` and `br` are present if they are smaller. */
export interface BundledFile {
  type: string;
  body: string;
  gzip?: string;
  br?: string;
}

/** The built console: the page, and the files that it loads, by name. Their names contain their hash. */
export interface Bundle {
  page: BundledFile;
  assets: Record<string, BundledFile>;
}

/** Path of the console on the API listener. */
export const dashboardPath = "/dashboard/";
export const assetsPath = `${dashboardPath}assets/`;
