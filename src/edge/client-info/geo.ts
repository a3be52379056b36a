import { isIP } from "node:net";
import { LRUCache } from "lru-cache";
import { open, type Reader, type Response } from "maxmind";
import { ConfigError } from "../../platform/config/config.ts";
import { watchFile } from "../../platform/util/watch-file.ts";
import { isEuropeanUnion } from "./countries.ts";
import type { GeoProperties, GeoSource } from "./geo-source.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";

export interface GeoFiles {
  city?: string | undefined;
  asn?: string | undefined;
}

const unknown: GeoProperties = {};
const addressesKept = 10_000;

/** A database file that cannot be used; the message names it. */
export class GeoError extends ConfigError {}

/** MMDB files, kept in memory and reloaded when they change. */
export class GeoDatabase implements GeoSource {
  readonly #known = new LRUCache<string, GeoProperties>(entriesMax(addressesKept));
  readonly #readers = new Map<keyof GeoFiles, Reader<Response>>();
  readonly #unwatch: (() => void)[] = [];
  #reload: () => Promise<void> = async () => {};

  /** Throws a {@link GeoError} for an invalid file. Later errors go to `onFault`, and the old data stays. */
  static async open(
    files: GeoFiles,
    onFault: (error: GeoError) => void,
    pollIntervalMs = 60_000,
  ): Promise<GeoDatabase> {
    const database = new GeoDatabase();
    const named = (["city", "asn"] as const).flatMap((kind) => {
      const file = files[kind];
      return file === undefined ? [] : [[kind, file] as const];
    });
    for (const [kind, file] of named) {
      const watch = watchFile(file, pollIntervalMs, () => {
        unawaited(database.#load(kind, file).catch(onFault));
      });
      database.#unwatch.push(watch);
    }
    database.#reload = async () => {
      for (const [kind, file] of named) await database.#load(kind, file).catch(onFault);
    };
    try {
      for (const [kind, file] of named) await database.#load(kind, file);
    } catch (error) {
      database.close();
      throw error;
    }
    return database;
  }

  lookUp(address: string): GeoProperties {
    let properties = this.#known.get(address);
    if (properties === undefined) this.#known.set(address, (properties = this.#read(address)));
    return properties;
  }

  /** Reads the files again now, and not only when a change is seen. */
  async reload(): Promise<void> {
    await this.#reload();
  }

  close(): void {
    for (const unwatch of this.#unwatch) unwatch();
  }

  async #load(kind: keyof GeoFiles, file: string): Promise<void> {
    try {
      this.#readers.set(kind, await open(file));
    } catch (error) {
      throw new GeoError(`${file} cannot be used as a database of addresses: ${(error as Error).message}`, {
        cause: error,
      });
    }
    this.#known.clear();
  }

  #read(address: string): GeoProperties {
    const family = isIP(address);
    if (family === 0) return unknown;
    const record = (kind: keyof GeoFiles): Json => {
      const reader = this.#readers.get(kind);
      // An IPv4-only database has no data for IPv6.
      if (reader === undefined || (family === 6 && reader.metadata.ipVersion === 4)) return undefined;
      return reader.get(address) as Json;
    };
    return { ...locationOf(record("city")), ...network(record("asn")) };
  }
}

type Json = { readonly [key: string]: Json } | readonly Json[] | string | number | boolean | null | undefined;

/** The value at a path in a record; undefined when the path does not exist. */
function at(record: Json, ...path: (string | number)[]): Json {
  let value = record;
  for (const step of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<string | number, Json>)[step];
  }
  return value;
}

const text = (value: Json): string | undefined =>
  typeof value === "string" && value !== "" ? value : typeof value === "number" ? String(value) : undefined;
const degrees = (value: Json): string | undefined =>
  value === undefined || value === null || value === "" || Number.isNaN(Number(value))
    ? undefined
    : Number(value).toFixed(5);

/** Supports both common layouts: nested with localized names, and flat. */
function locationOf(record: Json): GeoProperties {
  if (record === undefined || record === null) return unknown;
  const country =
    text(at(record, "country", "iso_code")) ??
    text(at(record, "registered_country", "iso_code")) ??
    text(at(record, "country_code"));
  return known({
    country,
    isEUCountry: country !== undefined && isEuropeanUnion(country) ? "1" : undefined,
    continent: text(at(record, "continent", "code")),
    city: text(at(record, "city", "names", "en")) ?? text(at(record, "city")),
    region: text(at(record, "subdivisions", 0, "names", "en")) ?? text(at(record, "state1")),
    regionCode: text(at(record, "subdivisions", 0, "iso_code")),
    subdivision2Code: text(at(record, "subdivisions", 1, "iso_code")),
    postalCode: text(at(record, "postal", "code")) ?? text(at(record, "postcode")),
    metroCode: text(at(record, "location", "metro_code")),
    timezone: text(at(record, "location", "time_zone")) ?? text(at(record, "timezone")),
    latitude: degrees(at(record, "location", "latitude") ?? at(record, "latitude")),
    longitude: degrees(at(record, "location", "longitude") ?? at(record, "longitude")),
  });
}

function network(record: Json): GeoProperties {
  const number = at(record, "autonomous_system_number");
  return known({
    asn: typeof number === "number" ? number : undefined,
    asOrganization: text(at(record, "autonomous_system_organization")),
  });
}

const known = (properties: Record<string, string | number | undefined>): GeoProperties =>
  Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== undefined)) as GeoProperties;
