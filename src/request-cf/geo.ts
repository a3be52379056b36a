import { isIP } from "node:net";
import { LRUCache } from "lru-cache";
import { open, type Reader, type Response } from "maxmind";
import { ConfigError } from "../config/config.ts";
import { watchFile } from "../util/watch-file.ts";
import { isEuropeanUnion } from "./countries.ts";
import type { GeoFacts, GeoSource } from "./geo-source.ts";

export interface GeoFiles {
  city?: string | undefined;
  asn?: string | undefined;
}

const unknown: GeoFacts = {};
const addressesKept = 10_000;

/** A database that cannot be used, said with its file. */
export class GeoError extends ConfigError {}

/** MMDB files, in memory, read again when they are replaced. */
export class GeoDatabase implements GeoSource {
  readonly #known = new LRUCache<string, GeoFacts>({ max: addressesKept });
  readonly #readers = new Map<keyof GeoFiles, Reader<Response>>();
  readonly #unwatch: (() => void)[] = [];

  /** Throws a {@link GeoError} for a file that is no database. Later, `onFault` hears of one; the data of before stays. */
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
      const watch = watchFile(file, pollIntervalMs, () => void database.#load(kind, file).catch(onFault));
      database.#unwatch.push(watch);
    }
    try {
      for (const [kind, file] of named) await database.#load(kind, file);
    } catch (error) {
      database.close();
      throw error;
    }
    return database;
  }

  lookUp(address: string): GeoFacts {
    let facts = this.#known.get(address);
    if (facts === undefined) this.#known.set(address, (facts = this.#read(address)));
    return facts;
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

  #read(address: string): GeoFacts {
    const family = isIP(address);
    if (family === 0) return unknown;
    const record = (kind: keyof GeoFiles): Json => {
      const reader = this.#readers.get(kind);
      // A database of IPv4 only has nothing to say about IPv6.
      if (reader === undefined || (family === 6 && reader.metadata.ipVersion === 4)) return undefined;
      return reader.get(address) as Json;
    };
    return { ...place(record("city")), ...network(record("asn")) };
  }
}

type Json = { readonly [key: string]: Json } | readonly Json[] | string | number | boolean | null | undefined;

/** A value at a path into a record; undefined where the record has no such place. */
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

/** Reads both ways in which databases are made: nested, with names in languages, and flat. */
function place(record: Json): GeoFacts {
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

function network(record: Json): GeoFacts {
  const number = at(record, "autonomous_system_number");
  return known({
    asn: typeof number === "number" ? number : undefined,
    asOrganization: text(at(record, "autonomous_system_organization")),
  });
}

const known = (facts: Record<string, string | number | undefined>): GeoFacts =>
  Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as GeoFacts;
