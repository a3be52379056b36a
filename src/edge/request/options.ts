import type { Logger } from "pino";
import type { SslMode } from "../../control/zone-settings/ssl-mode.ts";
import type { AccessLog } from "../../platform/access-log/access-log.ts";
import type { CurrentData } from "../../platform/processes/main-channel.ts";
import type { Observe } from "../../platform/observability/observation.ts";
import type { RequestCf } from "../client-info/request-cf.ts";
import type { Routing } from "../configuration/route.ts";
import type { EdgeSnapshot } from "../configuration/snapshot.ts";
import type { AddressPolicy } from "../origin/address-policy.ts";
import type { Origins } from "../origin/origins.ts";
import type { LookUp } from "../origin/resolve.ts";
import type { EdgeHandler, UpgradeHandler } from "./handlers.ts";
import type { RequestTraces } from "../http/request-traces.ts";
import type { EdgeSettings } from "../http/settings.ts";
import type { ViaHeader } from "../http/via.ts";

export interface EdgeOptions {
  settings: EdgeSettings;
  snapshot: EdgeSnapshot;
  policy: AddressPolicy;
  lookUp: LookUp;
  logger: Logger;
  /** Called in order before the origin; the first that takes a request answers it. */
  handlers?: readonly EdgeHandler[];
  upgradeHandlers?: readonly UpgradeHandler[];
  /** Shared connections to origins; the edge creates its own otherwise. */
  origins?: Origins;
  /** Chooses paths for smart routing; without it the addresses are tried in turn. */
  routing?: Routing;
  /** TLS mode of a zone; without it connections to origins are plain HTTP. */
  sslMode?: (zoneId: string) => SslMode;
  /** Called at the end of each request. */
  observe?: Observe | undefined;
  /** Called with the code of each error page. */
  onError?: ((code: number) => void) | undefined;
  /** Writes a line for each request; without it there is no log. */
  accessLog?: AccessLog | undefined;
  /** Begins a span for each request; without it there are no traces. */
  traces?: RequestTraces | undefined;
  /** Builds the `cf` object; without it the object is empty. */
  requestCf?: RequestCf;
  /** Whether requests are refused because the configuration is too old; without it they never are. */
  isStale?: (() => boolean) | undefined;
  /** In an edge process: whether every change that the main process has acknowledged is in effect here. */
  mainChannel?: CurrentData | undefined;
  /** Recognizes requests of scripts; without it there are none. */
  viaHeader?: ViaHeader;
}
