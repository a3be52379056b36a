import { isUniqueViolation } from "../../../platform/storage/dialects.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import { newId } from "../../../platform/util/ids.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import type { Zones } from "../../../control/zones/zones.ts";
import { isWithin, parsePattern, RouteTable, type RoutePattern } from "./route-table.ts";
import type { Scripts } from "../scripts.ts";
import * as store from "./store-routes.ts";
import { routeErrors } from "./errors.ts";

/** A pattern of URLs of a zone, and the script that answers them. */
export interface ScriptRoute {
  id: string;
  zoneId: string;
  pattern: string;
  /** Null excludes the requests from less specific routes. */
  script: string | null;
}

/** Routes of all zones; in memory, compiled for each zone. */
export class Routes {
  readonly #storage: Storage;
  readonly #scripts: Scripts;
  readonly #zones: Zones;
  #tables = new Map<string, RouteTable<ScriptRoute>>();

  constructor(storage: Storage, scripts: Scripts, zones: Zones) {
    this.#storage = storage;
    this.#scripts = scripts;
    this.#zones = zones;
    storage.onChange(
      async (changes) => {
        const zoneIds = new Set(
          changes.flatMap(({ kind, id }) =>
            kind === "worker_route" || (kind === "zone" && this.#tables.has(id)) ? [id] : [],
          ),
        );
        for (const zoneId of zoneIds) {
          const routes = await store.listRoutes(storage.read, zoneId);
          if (routes.length === 0) this.#tables.delete(zoneId);
          else this.#tables.set(zoneId, tableOf(routes));
        }
      },
      async () => this.#read(),
    );
    // A script's routes are deleted with it.
    scripts.onDelete(async (trx, { accountId, namespaceId, name }, changed) => {
      if (namespaceId !== null) return;
      const routes = (await store.listRoutes(trx)).filter((route) => this.#leadsTo(route, accountId, name));
      await store.removeRoutes(
        trx,
        routes.map(({ id }) => id),
      );
      for (const { zoneId } of routes) changed({ kind: "worker_route", id: zoneId });
    });
  }

  async start(): Promise<void> {
    (await this.#read())();
  }

  async #read(): Promise<() => void> {
    const byZone = Map.groupBy(await store.listRoutes(this.#storage.read), ({ zoneId }) => zoneId);
    const tables = new Map([...byZone].map(([zoneId, routes]) => [zoneId, tableOf(routes)]));
    return () => (this.#tables = tables);
  }

  /** The most specific route of a zone that matches a URL. `path` includes the query. */
  match(zoneId: string, scheme: "http" | "https", host: string, path: string): ScriptRoute | undefined {
    return this.#tables.get(zoneId)?.match(scheme, host, path);
  }

  async list(zoneId: string): Promise<ScriptRoute[]> {
    return store.listRoutes(this.#storage.read, zoneId);
  }

  async get(zoneId: string, id: string): Promise<ScriptRoute> {
    const route = (await this.list(zoneId)).find((each) => each.id === id);
    if (route === undefined) throw routeErrors.notFound(id);
    return route;
  }

  async create(zone: Zone, pattern: string, script: string | null): Promise<ScriptRoute> {
    return this.#save(zone, { id: newId(), zoneId: zone.id, pattern, script });
  }

  async update(zone: Zone, id: string, pattern: string, script: string | null): Promise<ScriptRoute> {
    return this.#save(zone, { ...(await this.get(zone.id, id)), pattern, script });
  }

  async delete(zone: Zone, id: string): Promise<void> {
    await this.get(zone.id, id);
    await this.#storage.write(async (trx, changed) => {
      await store.removeRoutes(trx, [id]);
      changed({ kind: "worker_route", id: zone.id });
    });
  }

  /**
   * Makes these the only routes to a script, and takes over patterns of other scripts. `checkZone` throws if
   * routes of a zone must not be removed.
   */
  async replace(
    accountId: string,
    script: string,
    wanted: readonly { zone: Zone; pattern: string }[],
    checkZone: (zone: Zone) => void,
  ): Promise<void> {
    this.#scripts.get({ accountId }, script);
    for (const { zone, pattern } of wanted) this.#check(zone, pattern);
    await this.#storage.write(async (trx, changed) => {
      await this.#scripts.lock(trx, { accountId }, script);
      const all = await store.listRoutes(trx);
      const isWanted = (route: ScriptRoute): boolean =>
        wanted.some(({ zone, pattern }) => zone.id === route.zoneId && pattern === route.pattern);
      const dropped = all.filter((route) => this.#leadsTo(route, accountId, script) && !isWanted(route));
      for (const { zoneId } of dropped) checkZone(this.#zones.find(zoneId)!);
      await store.removeRoutes(
        trx,
        dropped.map(({ id }) => id),
      );
      for (const { zone, pattern } of wanted) {
        const known = all.find((route) => route.zoneId === zone.id && route.pattern === pattern);
        await store.putRoute(trx, { id: known?.id ?? newId(), zoneId: zone.id, pattern, script });
      }
      const zoneIds = new Set([...dropped.map(({ zoneId }) => zoneId), ...wanted.map(({ zone }) => zone.id)]);
      for (const id of zoneIds) changed({ kind: "worker_route", id });
    });
  }

  async #save(zone: Zone, route: ScriptRoute): Promise<ScriptRoute> {
    this.#check(zone, route.pattern);
    if (route.script !== null) this.#scripts.get({ accountId: zone.accountId }, route.script);
    try {
      await this.#storage.write(async (trx, changed) => {
        if (route.script !== null) await this.#scripts.lock(trx, { accountId: zone.accountId }, route.script);
        await store.putRoute(trx, route);
        changed({ kind: "worker_route", id: zone.id });
      });
    } catch (error) {
      throw isUniqueViolation(error) ? routeErrors.exists(route.pattern) : error;
    }
    return route;
  }

  /** Throws if no request to the zone can match a pattern. */
  #check(zone: Zone, text: string): void {
    const pattern = parsePattern(text);
    if (typeof pattern === "string") throw routeErrors.invalid(text, pattern);
    if (!isWithin(pattern, zone.name)) throw routeErrors.invalid(text, `a host within the zone ${zone.name}`);
    const governor = this.#zones.governing(pattern.host.replace(/^\./, ""));
    // A zone that is not active yet may be prepared.
    if (this.#zones.governs(zone) && governor?.accountId !== zone.accountId)
      throw routeErrors.invalid(text, "a host that is in no zone of another account");
  }

  #leadsTo({ script, zoneId }: ScriptRoute, accountId: string, name: string): boolean {
    return script === name && this.#zones.find(zoneId)?.accountId === accountId;
  }
}

const tableOf = (routes: readonly ScriptRoute[]): RouteTable<ScriptRoute> =>
  new RouteTable(routes.map((route) => ({ pattern: parsePattern(route.pattern) as RoutePattern, route })));
