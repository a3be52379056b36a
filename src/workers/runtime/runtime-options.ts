import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { AssetServer } from "../assets/asset-server.ts";
import type { RunAdmission } from "../../sandbox/limits/admission.ts";
import type { Cells } from "../../sandbox/cells.ts";
import type { DispatchNamespaces } from "../scripts/namespaces/namespaces.ts";
import type { Outbound, Send } from "../../edge/origin/outbound.ts";
import type { Scripts } from "../scripts/scripts.ts";
import type { SourceMaps } from "../stack-traces/source-maps.ts";
import type { Tails } from "../tail/tails.ts";
import type { BindingRegistry } from "../binding-registry.ts";
import type { RunLimits } from "./run-context.ts";

export interface RuntimeLimits extends RunLimits {
  /** Maximum number of subrequests of all runs that one request causes, and of those at the same time. */
  treeSubRequests: number;
  treeRunningMax: number;
  memoryBytes: number;
  /** Time limit for handlers of events. */
  eventMs: number;
  bodyBytesMax: number;
  idleTimeoutMs: number;
  cacheBytes: number;
}

export interface RuntimeOptions {
  scripts: Scripts;
  namespaces: DispatchNamespaces;
  /**
   * Cells for accounts' scripts, together with the customers that they dispatch to, and cells for customers
   * that are watched.
   */
  cells: { own: Cells; customers: Cells };
  subrequests: RunAdmission;
  outbound: Outbound;
  assets: AssetServer;
  tails: Tails;
  sourceMaps: SourceMaps;
  bindings: BindingRegistry;
  /** Changes with every change that may affect a dispatch. */
  generation: () => string;
  limits: RuntimeLimits;
  logger: Logger;
}

/** Whose pictures are fetched and transformed. */
export interface PictureOwner {
  /** The id of the account, zone or customer that shares cached pictures. */
  id: string;
  /** The account whose share of the engine is used. */
  accountId: string;
}

/**
 * Answers a `fetch` with `cf.image`: the picture at `url`, transformed. `image` is the options as JSON. `send` fetches the
 * original.
 */
export type AnswerImageFetch = (
  owner: PictureOwner,
  order: { image: string; url: URL; send: Send },
  request: IncomingMessage,
  response: ServerResponse,
) => Promise<void>;
