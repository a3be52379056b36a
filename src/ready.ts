import { resolve } from "node:path";
import type { Services } from "./capabilities.ts";
import { authorityFiles } from "./edge/tls/certificates/authority-files.ts";
import { dashboardPath } from "./platform/dashboard/bundle.ts";
import { accountHash } from "./products/images/image-services.ts";
import { controlOf } from "./test-api/capability.ts";

/** The addresses of all listeners: the content of the ready file. */
export interface Ready {
  api: string;
  edge: string;
  /** Null if the edge does not listen for TLS. `tls_authority` is the path of a PEM file, for clients to trust. */
  edge_tls: string | null;
  tls_authority: string | null;
  /** Host and port, for UDP and TCP. */
  dns: string;
  /** Null without `metrics-listen`. */
  metrics: string | null;
  delivery: string;
  dashboard: string;
  account_id: string;
  account_hash: string;
  pid: number;
  /** Start of the process, in RFC 3339. */
  started: string;
  /** The control surface of tests and its secret; absent without `test-api`. */
  control?: { url: string; token: string };
  /** The tokens of a seed, by name; absent without a seed. */
  tokens?: Record<string, string>;
  /** The other accounts of a seed, by name, each with a token for everything in it. */
  accounts?: Record<string, { account_id: string; token: string; tokens: Record<string, string> }>;
}

/** `supervisorPid` is the process that signals go to, if it is not this one. */
export function readyOf(services: Services, supervisorPid?: number): Ready {
  const { apiListener, edgeListener, edgeTlsListener, dnsListener, metricsListener, testControl } = services;
  const hasTls = edgeTlsListener.address !== undefined;
  const accountId = services.owner.current!.account.id;
  return {
    api: `http://${apiListener.authority}/client/v4`,
    edge: `http://${edgeListener.authority}`,
    edge_tls: hasTls ? `https://${edgeTlsListener.authority}` : null,
    tls_authority: hasTls ? resolve(authorityFiles(services.authorityDir).certificate) : null,
    dns: dnsListener.authority,
    metrics: metricsListener.address === undefined ? null : `http://${metricsListener.authority}/metrics`,
    delivery: services.images.deliveryUrl,
    dashboard: `http://${apiListener.authority}${dashboardPath}`,
    account_id: accountId,
    account_hash: accountHash(accountId),
    pid: supervisorPid ?? process.pid,
    started: new Date(performance.timeOrigin).toISOString(),
    ...(testControl === undefined ? {} : { control: controlOf(apiListener.authority, testControl.secret) }),
  };
}
