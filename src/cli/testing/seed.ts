import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { readdirSync, readFileSync } from "node:fs";
import { z } from "zod";
import { plans } from "../../control/zones/plans.ts";
import { atOnce } from "../../platform/timers/slices.ts";
import { messageOf, readLines } from "../../dns/records/zone-file/import.ts";
import { parseRecord, type RecordFields } from "../../dns/records/record.ts";
import type { Seed, SeedContent, SeedScript, SeedToken, SeedZone } from "../../testkit/seed.ts";
import { describeBytes, type Bytes } from "../migration/bytes.ts";
import { documentVersion, type Document } from "../migration/document.ts";
import { MigrationError, printable } from "../migration/failure.ts";
import { groups, type DescribedResource } from "../migration/product.ts";
import { products } from "../migration/products.ts";
import { lineOf } from "./line-of.ts";

const named = <Value extends z.ZodType>(value: Value) => z.record(z.string().min(1).max(1024), value);
const file = z.string().min(1).max(4096);
const bindings = z.array(z.looseObject({ type: z.string(), name: z.string() })).max(1000);

const ZoneSchema = z.strictObject({
  records: z.array(z.union([z.string(), z.record(z.string(), z.unknown())])).max(1_000_000),
  zone_file: file,
  settings: named(z.string()),
  rules: named(z.array(z.record(z.string(), z.unknown())).max(10_000)),
  snippets: named(file),
  snippet_rules: z.array(z.record(z.string(), z.unknown())).max(1000),
  domains: named(z.string()),
  routes: named(z.string()),
});
const ScriptSchema = z.strictObject({
  main: file,
  modules: z.array(file).max(2000).optional(),
  bindings: bindings.optional(),
  compatibility_date: z.string().optional(),
  compatibility_flags: z.array(z.string()).max(100).optional(),
  schedules: z.array(z.string()).max(100).optional(),
  object_classes: z.array(z.string()).max(100).optional(),
});
/** Names become parts of environment variables. */
const tokenName = z.string().regex(/^[A-Za-z][\w-]{0,49}$/, "Expected a name of letters, digits, _ and -");
const ContentSchema = z
  .strictObject({
    zones: named(ZoneSchema.partial()),
    scripts: named(ScriptSchema),
    kv: named(z.union([file, z.record(z.string(), z.unknown())])),
    d1: z.array(z.string()).max(10_000),
    queues: named(
      z.strictObject({ consumer: z.string().optional(), dead_letter_queue: z.string().optional() }),
    ),
    images: named(file),
    workflows: named(
      z.strictObject({
        script: z.string(),
        class: z.string(),
        schedules: z.array(z.string()).max(100).optional(),
      }),
    ),
    tokens: z.record(
      tokenName,
      z.strictObject({
        permissions: z.array(z.string()).min(1).max(100),
        zone: z.string().optional(),
        expires: z.string().max(100).optional(),
      }),
    ),
  })
  .partial();
const SeedSchema = ContentSchema.extend({
  folder: file.optional(),
  accounts: named(ContentSchema).optional(),
});

export type Where = readonly (string | number)[];

/** The content of one account of a seed. */
export interface SeededContent {
  /** The account's resources, as a file of import has them. */
  document: Document;
  tokens: Readonly<Record<string, SeedToken>>;
  /** Throws a MigrationError with the line of a path in this content. */
  fail: (where: Where, message: string) => never;
}
/** The content of the owner's account, and other accounts by name. */
export interface SeededPlatform extends SeededContent {
  accounts: Readonly<Record<string, SeededContent>>;
}

/** Reads a seed. Throws a MigrationError that names the wrong part, with its line if the text is that of the file. */
export function readSeed(seedFile: string, text: string, hasLines = true): SeededPlatform {
  const fail = (where: Where, message: string): never => {
    const line = hasLines ? `, line ${lineOf(text, where)}` : "";
    const at = where.length === 0 ? "" : `, ${where.join(".")}`;
    throw new MigrationError(`${seedFile}${line}${at}: ${printable(message)}`);
  };
  const parsed = SeedSchema.safeParse(JSON.parse(text));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    fail(issue!.path as Where, issue!.message);
  }
  const { folder = ".", accounts = {}, ...own } = parsed.data as Seed;
  const read = (content: SeedContent, path: Where): SeededContent => {
    const failHere = (where: Where, message: string): never => fail([...path, ...where], message);
    const reader = new SeedReader(resolve(dirname(seedFile), folder), failHere);
    return { document: reader.document(content), tokens: content.tokens ?? {}, fail: failHere };
  };
  const others = Object.entries(accounts).map(
    ([name, content]) => [name, read(content, ["accounts", name])] as const,
  );
  return { ...read(own, []), accounts: Object.fromEntries(others) };
}

/** Converts a seed to resources. */
class SeedReader {
  readonly #folder: string;
  readonly #fail: (where: Where, message: string) => never;
  readonly #resources: DescribedResource[] = [];

  constructor(folder: string, fail: (where: Where, message: string) => never) {
    this.#folder = folder;
    this.#fail = fail;
  }

  document(seed: SeedContent): Document {
    for (const [name, zone] of Object.entries(seed.zones ?? {})) this.#zone(name, zone, ["zones", name]);
    for (const [name, script] of Object.entries(seed.scripts ?? {}))
      this.#script(name, script, ["scripts", name]);
    this.#addKv(seed);
    for (const [index, name] of (seed.d1 ?? []).entries()) this.#add("d1_database", { name }, ["d1", index]);
    this.#addQueues(seed);
    for (const [id, path] of Object.entries(seed.images ?? {})) {
      const where = ["images", id];
      const content = describeBytes(this.#read(path, where));
      this.#add("image", { id, filename: basename(path), content }, where);
    }
    for (const [name, { script, class: of, schedules = [] }] of Object.entries(seed.workflows ?? {}))
      this.#add("workflow", { name, class_name: of, script_name: script, schedules }, ["workflows", name]);
    const used = new Set(
      this.#resources.map((each) => products.find(({ name }) => name === each.product)!.group),
    );
    return {
      selvedge_import: documentVersion,
      source: { base_url: "", account_id: "" },
      zones: Object.keys(seed.zones ?? {}).map((name) => ({ id: "", name })),
      include: groups.filter((group) => group === "zones" || used.has(group)),
      resources: this.#resources,
      left_out: [],
    };
  }

  #zone(name: string, zone: SeedZone, where: Where): void {
    this.#add("zone", { name, type: "full", paused: false }, where, name);
    for (const record of this.#records(name, zone, where))
      this.#add("dns_record", { ...record }, [...where, "records"], name);
    for (const [id, value] of Object.entries(zone.settings ?? {}))
      this.#add("zone_setting", { id, value }, [...where, "settings", id], name);
    for (const [phase, rules] of Object.entries(zone.rules ?? {}))
      this.#add("ruleset", { phase, rules }, [...where, "rules", phase], name);
    for (const [snippet, path] of Object.entries(zone.snippets ?? {})) {
      const at = [...where, "snippets", snippet];
      this.#add(
        "snippet",
        { name: snippet, main_module: basename(path), modules: [this.#module(path, dirname(path), at)] },
        at,
        name,
      );
    }
    const { snippet_rules: rules = [] } = zone;
    if (rules.length > 0)
      this.#add(
        "snippet_rules",
        { rules: rules.map((rule) => ({ enabled: true, ...rule })) },
        [...where, "snippet_rules"],
        name,
      );
    for (const [hostname, service] of Object.entries(zone.domains ?? {}))
      this.#add("domain", { hostname, service }, [...where, "domains", hostname], name);
    for (const [pattern, script] of Object.entries(zone.routes ?? {}))
      this.#add("route", { pattern, script }, [...where, "routes", pattern], name);
  }

  /** The records of the zone file and of the list. Texts in the list are lines of a zone file. */
  #records(zone: string, { records = [], zone_file: path }: SeedZone, where: Where): RecordFields[] {
    const found: RecordFields[] = [];
    if (path !== undefined) {
      const at = [...where, "zone_file"];
      const { entries, refused } = atOnce(
        readLines(this.#read(path, at).toString(), zone, plans.enterprise, false),
      );
      for (const { line, message } of refused) this.#fail(at, `${path}, line ${line}: ${message}`);
      found.push(...entries.map(({ fields }) => fields));
    }
    const texts = records.map((record) => (typeof record === "string" ? record.replaceAll("\n", " ") : ""));
    const { entries, refused } = atOnce(readLines(texts.join("\n"), zone, plans.enterprise, false));
    for (const { line, message } of refused) this.#fail([...where, "records", line - 1], message);
    found.push(...entries.map(({ fields }) => fields));
    for (const [index, record] of records.entries()) {
      if (typeof record === "string") continue;
      try {
        found.push(parseRecord(record, zone, plans.enterprise));
      } catch (error) {
        this.#fail([...where, "records", index], messageOf(error));
      }
    }
    return found;
  }

  #script(name: string, script: SeedScript, where: Where): void {
    const { main, modules = [], bindings: bound = [], schedules = [] } = script;
    const from = dirname(main);
    const value = {
      name,
      main_module: basename(main),
      service_worker: false,
      modules: [main, ...modules].map((path) => this.#module(path, from, where)),
      bindings: bound,
      compatibility_date: script.compatibility_date ?? null,
      compatibility_flags: script.compatibility_flags ?? [],
      usage_model: "standard",
      limits: {},
      placement: null,
      observability: { enabled: false },
      tags: [],
      object_classes: script.object_classes ?? [],
      schedules,
      subdomain: { enabled: false, previews_enabled: false },
    };
    this.#add("script", value, where);
  }

  #addKv({ kv = {} }: SeedContent): void {
    for (const [namespace, values] of Object.entries(kv)) {
      const where = ["kv", namespace];
      this.#add("kv_namespace", { title: namespace }, where);
      const content = typeof values === "string" ? this.#valuesIn(values, where) : values;
      for (const [key, value] of Object.entries(content))
        this.#add("kv_value", { namespace, key, value: describedValue(value) }, [...where, key]);
    }
  }

  #valuesIn(path: string, where: Where): Record<string, Uint8Array> {
    const folder = resolve(this.#folder, path);
    try {
      const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) =>
        each.isFile(),
      );
      return Object.fromEntries(
        files.map(({ parentPath, name }) => {
          const at = join(parentPath, name);
          return [relative(folder, at).split(sep).join("/"), readFileSync(at)];
        }),
      );
    } catch (error) {
      return this.#fail(where, (error as Error).message);
    }
  }

  #addQueues({ queues = {} }: SeedContent): void {
    for (const [name, { consumer, dead_letter_queue: dead = "" }] of Object.entries(queues)) {
      const where = ["queues", name];
      this.#add("queue", { name, settings: {} }, where);
      if (consumer === undefined) continue;
      const value = { queue: name, type: "worker", script: consumer, dead_letter_queue: dead, settings: {} };
      this.#add("queue_consumer", value, where);
    }
  }

  #module(path: string, from: string, where: Where): object {
    const extension = /\.\w+$/.exec(path)?.[0] ?? "";
    const type = contentTypes[extension];
    if (type === undefined)
      return this.#fail(
        where,
        `Expected a file with ${Object.keys(contentTypes).join(", ")} but received ${path}`,
      );
    const name = relative(from, path).split(sep).join("/");
    return { name, content_type: type, content: describeBytes(this.#read(path, where)) };
  }

  #read(path: string, where: Where): Buffer {
    try {
      return readFileSync(resolve(this.#folder, path));
    } catch (error) {
      return this.#fail(where, (error as Error).message);
    }
  }

  #add(product: string, value: Record<string, unknown>, where: Where, zone?: string): void {
    const declared = products.find(({ name }) => name === product)!;
    const parsed = declared.schema.strict().safeParse(value);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      this.#fail(where, `${issue!.path.join(".")}: ${issue!.message}`);
    }
    this.#resources.push({
      product,
      ...(zone === undefined ? {} : { zone }),
      key: declared.key(parsed.data),
      value: parsed.data,
    });
  }
}

const describedValue = (value: unknown): Bytes =>
  value instanceof Uint8Array
    ? describeBytes(value)
    : { text: typeof value === "string" ? value : JSON.stringify(value) };

/** The content types of modules, by the extensions of their files. */
const contentTypes: Readonly<Record<string, string>> = {
  ".js": "application/javascript+module",
  ".mjs": "application/javascript+module",
  ".wasm": "application/wasm",
  ".json": "application/json",
  ".txt": "text/plain",
  ".html": "text/plain",
  ".bin": "application/octet-stream",
};
