/** A record: a line of a zone file, such as "www 60 A 192.0.2.1", or the body of its creation. */
export type SeedRecord =
  | string
  | {
      type: string;
      name: string;
      content?: string;
      data?: Record<string, unknown>;
      priority?: number;
      ttl?: number;
      proxied?: boolean;
      comment?: string;
      tags?: string[];
    };

/** A zone at the start, with the things that belong to it. */
export interface SeedZone {
  records?: SeedRecord[];
  /** A zone file (RFC 1035). */
  zone_file?: string;
  /** Values of settings, by their ids. */
  settings?: Record<string, string>;
  /** Rules, by their phases. */
  rules?: Record<string, { expression: string; action: string; [field: string]: unknown }[]>;
  /** Files of snippets, by the names of the snippets. */
  snippets?: Record<string, string>;
  snippet_rules?: { expression: string; snippet_name: string; description?: string; enabled?: boolean }[];
  /** Scripts, by the hosts that they have for themselves. */
  domains?: Record<string, string>;
  /** Scripts, by patterns of URLs. */
  routes?: Record<string, string>;
}

/** A script at the start. */
export interface SeedScript {
  /** The file of the main module. */
  main: string;
  /** Files of other modules, which are named from the folder of the main one. */
  modules?: string[];
  /** As in an upload, but with names in place of ids: `namespace` of kv_namespace, `database` of d1. */
  bindings?: { type: string; name: string; [field: string]: unknown }[];
  compatibility_date?: string;
  compatibility_flags?: string[];
  /** Cron expressions. */
  schedules?: string[];
  /** Classes of Durable Objects. */
  object_classes?: string[];
}

/** The content of a platform at its start, without ids: things refer to each other by name. */
export interface Seed {
  /** The folder of the files that are named here; by default that of the seed file, or the working folder. */
  folder?: string;
  zones?: Record<string, SeedZone>;
  scripts?: Record<string, SeedScript>;
  /** Values by their keys, or a folder with a file for each key. Other values than text become JSON. */
  kv?: Record<string, string | Record<string, unknown>>;
  /** Names of databases. */
  d1?: string[];
  queues?: Record<string, { consumer?: string; dead_letter_queue?: string }>;
  /** Files of pictures, by their ids. */
  images?: Record<string, string>;
  workflows?: Record<string, { script: string; class: string; schedules?: string[] }>;
}

/** Checks the type of a seed in a module of its own. */
export const defineSeed = (seed: Seed): Seed => seed;
