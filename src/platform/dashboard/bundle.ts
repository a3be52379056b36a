/** A file of the built console, in base64. `gzip` and `br` are present if they are smaller. */
export interface BundledFile {
  type: string;
  body: string;
  gzip?: string;
  br?: string;
}

/** The built console. The names of its files contain their hash. */
export interface Bundle {
  /** The page. `{screen}` stands for the links to the code of the screen at its address. */
  page: string;
  /** The hash of the script in the page, as the content security policy names it. */
  scriptHash: string;
  /** The files that a screen needs beside the first one, by the pattern of its route below /dashboard. */
  screens: { pattern: string; names: string[] }[];
  /** The files that the page loads, by name. */
  assets: Record<string, BundledFile>;
}

/** Path of the console on the API listener. */
export const dashboardPath = "/dashboard/";
export const assetsPath = `${dashboardPath}assets/`;
