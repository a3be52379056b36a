import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { originError } from "../http/errors.ts";
import { neverConnected, type Origins } from "../origin/origins.ts";
import type { OriginTls, Path, EdgeRoute, Routing } from "../configuration/route.ts";
import type { Analytics, PathReport } from "./analytics.ts";
import { sendOver } from "./attempts.ts";
import { OriginPath, type PathObservations } from "./origin-path.ts";
import { PathGroup } from "./path-group.ts";
import type { SetAside } from "./probes.ts";
import type { Relays } from "./relays.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";

const groupsMax = 10_000;
const addressesMax = 16;

/** The origin of a zone with smart routing. */
export interface GroupOrigin {
  zoneId: string;
  addresses: readonly string[];
  port: number;
  tls: OriginTls | undefined;
}

/** An origin with its paths. */
export interface KnownGroup extends GroupOrigin {
  group: PathGroup;
}

/** Sends each origin request of a zone with smart routing on the fastest path. */
export class SmartRouting implements Routing {
  readonly #origins: Origins;
  readonly #relays: Relays;
  readonly #analytics: Analytics;
  readonly #logger: Pick<Logger, "warn" | "info">;
  readonly #groups = new LRUCache<string, KnownGroup>({
    ...entriesMax(groupsMax),
  });
  /** Called with a group whose paths have news for other processes; undefined in a node of one process. */
  onObservation: ((group: KnownGroup, isUrgent: boolean) => void) | undefined;

  constructor(origins: Origins, relays: Relays, analytics: Analytics, logger: Pick<Logger, "warn" | "info">) {
    this.#origins = origins;
    this.#relays = relays;
    this.#analytics = analytics;
    this.#logger = logger;
    analytics.pathsOf = (zoneId) => this.#report(zoneId);
  }

  route(zoneId: string, addresses: readonly string[], port: number, tls: OriginTls | undefined): EdgeRoute {
    const group = this.#group(zoneId, addresses, port, tls);
    const series = this.#analytics.zone(zoneId);
    return {
      send: async (attempt, isRepeatable, isWhole) => {
        const { path, kind } = group.choose(addresses[0]!, isRepeatable, performance.now());
        try {
          await sendOver(path, kind !== "control", {
            group,
            isRepeatable,
            send: attempt,
            connect: (each) => this.#connect(zoneId, each, port, tls),
            isUnsent: (error) => isWhole() && neverConnected(error),
            answered: (ttfbMs) => series.add(kind === "control" ? "direct" : "smart", ttfbMs),
            hedged: () => series.hedged(),
            setAside: (each, failure) =>
              this.#logger.warn(
                { zone: zoneId, path: each.name, err: failure },
                "a failing path to an origin is excluded for a while",
              ),
          });
        } catch (error) {
          series.failed();
          throw originError(error);
        }
      },
    };
  }

  /** Takes over the observations of another process, by the names of paths. */
  merge(
    { zoneId, addresses, port, tls }: GroupOrigin,
    observations: Readonly<Record<string, PathObservations>>,
  ): void {
    const group = this.#group(zoneId, addresses, port, tls);
    const nowMs = performance.now();
    for (const path of group.paths) {
      const ofPath = observations[path.name];
      if (ofPath !== undefined) path.merge(ofPath, nowMs);
    }
    group.follow(nowMs);
  }

  /** Drops the state of a deleted zone's origins. */
  forget(zoneId: string): void {
    for (const [name, each] of [...this.#groups.entries()])
      if (each.zoneId === zoneId) this.#groups.delete(name);
  }

  /** The paths that are currently excluded. */
  setAside(): SetAside[] {
    const nowMs = performance.now();
    return [...this.#groups.values()].flatMap(({ group, port }) =>
      group.paths.filter((path) => path.isEjected(nowMs)).map((path) => ({ path, port })),
    );
  }

  #report(zoneId: string): PathReport[] {
    const nowMs = performance.now();
    return [...this.#groups.values()]
      .filter((each) => each.zoneId === zoneId)
      .flatMap(({ group, port }, origin) =>
        group.paths.map((path) => ({
          path: path.name,
          origin,
          address: path.address,
          port,
          relay: path.relay?.name,
          isCurrent: path === group.current,
          isEjected: path.isEjected(nowMs),
          ejectedForMs: path.ejectedForMs(nowMs),
          ttfbMs: path.latency.ms,
          quantilesMs: [0.5, 0.9, 0.99].map((share) => path.latency.quantile(share)),
          inFlight: path.inFlight,
          requests: path.requests,
          failures: path.failures,
        })),
      );
  }

  async #connect(zoneId: string, path: OriginPath, port: number, tls: OriginTls | undefined): Promise<Path> {
    if (path.relay !== undefined) return this.#relays.path(path.relay, path.address, port, tls);
    return { client: this.#origins.client(zoneId, path.address, port, tls), address: path.address };
  }

  #group(zoneId: string, addresses: readonly string[], port: number, tls: OriginTls | undefined): PathGroup {
    const name = `${zoneId} ${port} ${tls?.servername ?? ""} ${tls?.isVerified ?? ""} ${addresses.toSorted().join()}`;
    let known = this.#groups.get(name);
    if (known === undefined) {
      const paths = addresses
        .slice(0, addressesMax)
        .flatMap((address) =>
          [undefined, ...this.#relays.list].map((relay) => new OriginPath(address, relay)),
        );
      const made: KnownGroup = { zoneId, addresses, port, tls, group: new PathGroup(paths) };
      if (this.onObservation !== undefined)
        for (const path of paths) path.onObservation = (isUrgent) => this.onObservation!(made, isUrgent);
      this.#groups.set(name, (known = made));
    }
    return known.group;
  }
}
