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
  interface Schema {
    type?: string | string[];
    enum?: unknown[];
    default?: unknown;
    properties?: Record<string, Schema>;
    required?: string[];
    items?: Schema;
    anyOf?: Schema[];
    oneOf?: Schema[];
    $ref?: string;
    description?: string;
    const?: unknown;
  }
  interface DocumentedOperation {
    /** Method and path, as in "GET /zones". */
    key: string;
    id: string;
    summary: string;
    query: { name: string; choices?: unknown[] }[];
    content?: string;
    body?: Schema;
  }
  const document: { schemas: Record<string, Schema>; operations: DocumentedOperation[] };
  export default document;
  export type { Schema, DocumentedOperation };
}
