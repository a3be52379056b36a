/* Modules that the build generates from openapi.json and package.json (src/platform/dashboard/build-process.ts). */

declare module "virtual:permissions" {
  const permissions: Readonly<Record<string, string>>;
  export default permissions;
}

declare module "virtual:runtime" {
  /** The day of the runtime: the latest compatibility date that it accepts for certain. */
  const runtime: { date: string };
  export default runtime;
}

declare module "virtual:operations" {
  interface DocumentedOperation {
    /** Method and path, as in "GET /zones". */
    key: string;
    id: string;
    summary: string;
    query: { name: string; choices?: unknown[] }[];
    content?: string;
    /** A body that fits, if it is JSON: its required fields, with defaults and first choices. */
    sample?: unknown;
  }
  const operations: readonly DocumentedOperation[];
  export default operations;
  export type { DocumentedOperation };
}
