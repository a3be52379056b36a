import type { RequestDescription } from "../../rules/language.ts";
import type { SslMode } from "../../control/zone-settings/ssl-mode.ts";
import { originTls, type OriginTls } from "../configuration/route.ts";
import type { EdgeSnapshot, EdgeZone, HostEntry } from "../configuration/snapshot.ts";
import { resolveName, resolveTargets, type LookUp } from "./resolve.ts";

/** The parts of a request that decide its origin. */
export interface AskedOrigin {
  /** Lower case, without a port. */
  host: string;
  /** The host as the visitor wrote it, with its port. */
  authority: string;
  isTls: boolean;
  describe: () => RequestDescription;
}

/** The destination of a request. */
export interface ChosenOrigin {
  addresses: string[];
  port: number;
  /** Undefined for plain HTTP. */
  tls: OriginTls | undefined;
  hostHeader: string;
}

export interface OriginChoice {
  snapshot: EdgeSnapshot;
  lookUp: LookUp;
  sslMode?: ((zoneId: string) => SslMode) | undefined;
}

/** Applies the zone's origin rules to a request. Rejects with a visitor error if the origin's name cannot be resolved. */
export async function chooseOrigin(
  zone: EdgeZone,
  entry: HostEntry,
  { host, authority, isTls, describe }: AskedOrigin,
  { snapshot, lookUp, sslMode }: OriginChoice,
): Promise<ChosenOrigin> {
  let hostHeader = authority;
  let originHost: string | undefined;
  let port: number | undefined;
  let sni: string | undefined;
  // All matching rules apply; for the same setting, the later rule wins.
  for (const rule of zone.originRules) {
    if (!rule.matches(describe)) continue;
    hostHeader = rule.hostHeader ?? hostHeader;
    originHost = rule.host ?? originHost;
    port = rule.port ?? port;
    sni = rule.sni ?? sni;
  }
  const addresses =
    originHost === undefined
      ? await resolveTargets(entry.targets, snapshot, lookUp, zone.configuration?.accountId)
      : await resolveName(originHost, snapshot, lookUp, zone.configuration?.accountId);
  const tls = isTls
    ? originTls(sslMode?.(zone.id) ?? "flexible", sni ?? (hostHeader === authority ? host : hostHeader))
    : undefined;
  return { addresses, port: port ?? (tls === undefined ? 80 : 443), tls, hostHeader };
}
