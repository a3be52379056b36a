import type { EdgeRequest } from "../../../edge/request/handlers.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import { parsePattern, RouteTable, type RoutePattern } from "./route-table.ts";
import * as store from "./store-routes.ts";

/**
 * The requests that may lead to scripts, for edge processes: by a zone's route, a custom domain, or a script's own
 * host name. Whether the script is deployed is main's to find out.
 */
export class RoutedRequests {
  readonly #storage: Storage;
  readonly #suffix: string;
  #tables = new Map<string, RouteTable<{ script: string | null }>>();
  #hosts: ReadonlySet<string> = new Set();

  /** `workersDomain` is the suffix of scripts' host names. */
  constructor(storage: Storage, workersDomain: string) {
    this.#storage = storage;
    this.#suffix = `.${workersDomain.toLowerCase()}`;
    const kinds: ReadonlySet<string> = new Set(["worker_route", "worker_domain", "zone"]);
    storage.onChange(
      async (changes) => {
        if (changes.some(({ kind }) => kinds.has(kind))) await this.load();
      },
      async () => this.#read(),
    );
  }

  async load(): Promise<void> {
    (await this.#read())();
  }

  concerns({ host, path, isTls, zone }: EdgeRequest): boolean {
    const table = zone && this.#tables.get(zone.id);
    const route = table?.match(isTls ? "https" : "http", host, path);
    if (route !== undefined) return route.script !== null;
    return this.#hosts.has(host) || host.endsWith(this.#suffix);
  }

  async #read(): Promise<() => void> {
    const routes = Map.groupBy(await store.listRoutes(this.#storage.read), ({ zoneId }) => zoneId);
    const domains = await store.listDomains(this.#storage.read);
    return () => {
      this.#tables = new Map(
        [...routes].map(([zoneId, ofZone]) => [
          zoneId,
          new RouteTable(
            ofZone.map((route) => ({ pattern: parsePattern(route.pattern) as RoutePattern, route })),
          ),
        ]),
      );
      this.#hosts = new Set(domains.map(({ hostname }) => hostname));
    };
  }
}
