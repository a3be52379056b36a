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

/** A zone of a seed, with its records, settings, rules, snippets and scripts. */
export interface SeedZone {
  records?: SeedRecord[];
  /** A zone file (RFC 1035). */
  zone_file?: string;
  /** Values of zone settings, by setting id. */
  settings?: Record<string, string>;
  /** Rules by phase. */
  rules?: Record<string, { expression: string; action: string; [field: string]: unknown }[]>;
  /** Files with the code of snippets, by name of the snippet. */
  snippets?: Record<string, string>;
  snippet_rules?: { expression: string; snippet_name: string; description?: string; enabled?: boolean }[];
  /** Custom domains: names of scripts by host name. */
  domains?: Record<string, string>;
  /** Routes: names of scripts by URL pattern. */
  routes?: Record<string, string>;
}

/** A script of a seed. */
export interface SeedScript {
  /** The file of the main module. */
  main: string;
  /** Files of other modules. Their names are paths relative to the folder of the main module. */
  modules?: string[];
  /** Bindings as in an upload, but with names instead of ids: `namespace` of kv_namespace, `database` of d1. */
  bindings?: { type: string; name: string; [field: string]: unknown }[];
  compatibility_date?: string;
  compatibility_flags?: string[];
  /** Cron expressions. */
  schedules?: string[];
  /** Names of the script's classes of Durable Objects. */
  object_classes?: string[];
}

/** A token of a seed, in its account or in one zone of it. */
export interface SeedToken {
  /** Names of permission groups, such as "DNS Write". */
  permissions: string[];
  /** The name of the zone. */
  zone?: string;
  /** How long the token is valid from the start on, such as "1 hour". Default: without an end. */
  expires?: string;
}

/** The content of an account. It has no ids: resources refer to each other by name. */
export interface SeedContent {
  zones?: Record<string, SeedZone>;
  scripts?: Record<string, SeedScript>;
  /** For each namespace: values by key, or a folder with a file for each key. Values other than text are stored as JSON. */
  kv?: Record<string, string | Record<string, unknown>>;
  /** Names of D1 databases. */
  d1?: string[];
  queues?: Record<string, { consumer?: string; dead_letter_queue?: string }>;
  /** Files of images, by image id. */
  images?: Record<string, string>;
  workflows?: Record<string, { script: string; class: string; schedules?: string[] }>;
  /** Tokens by name. `tokens` of the platform, or of the account, has their values. */
  tokens?: Record<string, SeedToken>;
}

/** The content with which a platform starts: that of the owner's account, and other accounts by name. */
export interface Seed extends SeedContent {
  /** The folder of the named files. Default: the folder of the seed file; for an object, the working folder. */
  folder?: string;
  accounts?: Record<string, SeedContent>;
}

/** Returns the seed unchanged: gives a seed in a file of its own the right type. */
export const defineSeed = (seed: Seed): Seed => seed;
