import { existsSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { arch, availableParallelism, freemem, loadavg, platform, release, totalmem } from "node:os";
import { join } from "node:path";
import { nodeResource } from "../../control/nodes/resource.ts";
import { describeConfig, parseAddress, type LoadedConfig } from "../../platform/config/config.ts";
import { databaseUrl, sqliteFileOf } from "../../platform/config/derived.ts";
import type { Setting } from "../../platform/config/setting.ts";
import { settings, type Config, type SettingName } from "../../platform/config/settings.ts";
import { programVersion } from "../../platform/storage/program-version.ts";
import { diagnose } from "./diagnosis.ts";
import { nodesOf } from "../nodes.ts";

const errorLinesMax = 200;
const logBytesMax = 4 * 1024 * 1024;
const scrapeMs = 5000;
const filesMax = 100_000;

/**
 * A report about this installation for others, as JSON: versions, settings, checks, nodes, migrations, sizes, metrics,
 * and errors of a log. A part that cannot be read has its error instead. Values of secret settings appear nowhere.
 */
export async function reportOf(loaded: LoadedConfig, logFile: string | undefined): Promise<string> {
  const { config } = loaded;
  const report = {
    made_on: new Date().toISOString(),
    version: programVersion,
    machine: {
      node: process.version,
      system: `${platform()} ${release()} ${arch()}`,
      cores: availableParallelism(),
      memory_bytes: totalmem(),
      free_memory_bytes: freemem(),
      load: loadavg(),
    },
    settings: describeConfig(loaded)
      .filter(({ origin }) => origin !== "default")
      .map(({ name, value, origin }) => ({ name, value, origin })),
    checks: await orError(() => diagnose(config)),
    nodes: await orError(async () => (await nodesOf(config)).map(nodeResource)),
    migrations: await orError(() => migrationsOf(config)),
    sizes: await orError(() => sizesOf(config.dataDir)),
    metrics: await orError(() => metricsOf(config)),
    log: logFile === undefined ? "none given: add --log FILE" : await orError(() => errorsOf(logFile)),
  };
  return `${withoutSecrets(JSON.stringify(report, null, 2), config)}\n`;
}

async function orError<T>(read: () => Promise<T>): Promise<T | { error: string }> {
  try {
    return await read();
  } catch (error) {
    return { error: (error as Error).message };
  }
}

async function migrationsOf(config: Config): Promise<string[]> {
  const query = "select name from kysely_migration order by name";
  const file = sqliteFileOf(config);
  if (file !== undefined) {
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(file, { readOnly: true });
    try {
      return database
        .prepare(query)
        .all()
        .map(({ name }) => String(name));
    } finally {
      database.close();
    }
  }
  if (config.databaseUrl === undefined) return [];
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: databaseUrl(config), connectionTimeoutMillis: scrapeMs });
  await client.connect();
  try {
    return (await client.query<{ name: string }>(query)).rows.map(({ name }) => name);
  } finally {
    await client.end();
  }
}

interface Size {
  files: number;
  bytes: number;
}

/** Numbers and bytes of the files in a folder: of its own, and of each folder in it. */
async function sizesOf(folder: string): Promise<Record<string, Size>> {
  if (!existsSync(folder)) return {};
  const sizes: Record<string, Size> = {};
  let seen = 0;
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    if (++seen > filesMax) break;
    const path = join(entry.parentPath, entry.name).slice(folder.length + 1);
    const name = path.includes("/") ? `${path.slice(0, path.indexOf("/"))}/` : path;
    const { size } = await stat(join(folder, path)).catch(() => ({ size: 0 }));
    const sum = (sizes[name] ??= { files: 0, bytes: 0 });
    sum.files++;
    sum.bytes += size;
  }
  return sizes;
}

/** The lines of a scrape, without help and without buckets. */
async function metricsOf({ metricsListen }: Config): Promise<string[]> {
  const { host, port } = parseAddress(metricsListen ?? "") ?? { host: "", port: 0 };
  if (port === 0) return ["not measured: --metrics-listen is not set, or has no fixed port"];
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}/metrics`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(scrapeMs) });
  const text = await answer.text();
  return text.split("\n").filter((line) => /^\w/.test(line) && !line.includes("_bucket{"));
}

/** The last lines of a log with the level `error`, `fatal` or `warn`. */
async function errorsOf(path: string): Promise<unknown[]> {
  const bytes = await readFile(path);
  const lines = bytes.subarray(-logBytesMax).toString().split("\n");
  return lines
    .filter((line) => /"level":"(error|fatal|warn)"/.test(line))
    .slice(-errorLinesMax)
    .map((line) => redacted(line));
}

/** A line of a log without credentials that a caller may have sent. */
const redacted = (line: string): string =>
  line
    .replaceAll(/\b(Bearer|Basic) +[^\s"\\]+/gi, "$1 ********")
    .replaceAll(/(\/\/[^\s/:@"]*):[^\s/@"]+@/g, "$1:********@");

const mask = "********";
/** Shorter values may be parts of other words. */
const secretLengthMin = 6;

/** The text with a mask in place of each secret of the settings, and of the passwords in their URLs. */
function withoutSecrets(text: string, config: Config): string {
  const secrets = (Object.keys(settings) as SettingName[]).flatMap((name) => {
    const setting: Setting = settings[name];
    const values = [config[name] ?? []].flat().map(String);
    const passwords = values.flatMap((value) => {
      const password = URL.parse(value)?.password ?? "";
      return [password, decoded(password)];
    });
    return setting.secret === true ? [...values, ...values.flatMap(valueOfHeader), ...passwords] : passwords;
  });
  const shown = secrets
    .filter((secret) => secret.length >= secretLengthMin)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]);
  return [...new Set(shown)]
    .toSorted((a, b) => b.length - a.length)
    .reduce((masked, secret) => masked.replaceAll(secret, mask), text);
}

/** The value of a header as some settings have it: name=value, or name: value. */
const valueOfHeader = (header: string): string[] => {
  const value = /^[\w-]+ *[=:](.+)$/.exec(header)?.[1]?.trimStart();
  return value === undefined ? [] : [value, decoded(value)];
};

/** Decodes percent-escapes; a text with malformed ones is unchanged. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
