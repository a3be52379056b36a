import { setTimeout as delay } from "node:timers/promises";
import type { Pool } from "undici";
import { traceHeader, type Tracer } from "../../platform/tracing/spans/tracer.ts";
import { leftOut } from "../../platform/observability/observation.ts";
import { isBusyOrAbsent, requestPath } from "../../platform/processes/protocol.ts";
import { VisitorError, visitorErrors } from "../http/errors.ts";
import type { EdgeSettings } from "../http/settings.ts";
import { clientOf } from "../origin-client/of-dispatcher.ts";
import type { Origins } from "../origin/origins.ts";
import { forward, type OriginRequest } from "../origin/proxy.ts";
import { joinOriginWebSocket } from "../origin/upgrade.ts";
import type { EdgeHandler, EdgeRequest, UpgradeHandler } from "../request/handlers.ts";
import { headersToMain } from "./visitor-connection.ts";

/** Whether main must answer a request. Called for every request, so it must be fast. */
export type Concerns = (edgeRequest: EdgeRequest) => boolean | Promise<boolean>;

/** How long a request waits while main is restarted. */
const absentMsMax = 5000;
const againMs = 100;
/** A script may answer with 128 KiB of headers, to which the edge adds its own. */
const responseHeadBytesMax = 256 * 1024;
const toMain = "main";

/** Whether the connection to main was lost before its answer. */
const isCut = (error: unknown): boolean =>
  ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"].includes((error as { code?: string }).code ?? "");

/** Passes visitors' requests from an edge process to main, with the properties of the visitor's connection. */
export class ToMain {
  readonly #path: string;
  readonly #settings: EdgeSettings;
  readonly #origins: Origins;
  readonly #tracer: Tracer | undefined;
  #pool: Promise<Pool> | undefined;

  constructor(folder: string, settings: EdgeSettings, origins: Origins, tracer: Tracer | undefined) {
    this.#tracer = tracer;
    this.#path = requestPath(folder);
    this.#settings = settings;
    this.#origins = origins;
  }

  /** Handlers that pass on the requests for which `concerns` is true. */
  when(concerns: Concerns): { handler: EdgeHandler; upgradeHandler: UpgradeHandler } {
    const ifSo = (edgeRequest: EdgeRequest, pass: () => Promise<true>): boolean | Promise<boolean> => {
      const isConcerned = concerns(edgeRequest);
      if (typeof isConcerned === "boolean") return isConcerned && pass();
      return isConcerned.then(async (is) => is && pass());
    };
    return {
      handler: (edgeRequest) =>
        ifSo(edgeRequest, async () => {
          const { request, response, record } = edgeRequest;
          leftOut.add(response);
          record?.leaveOut();
          const origin = { ...this.#originOf(edgeRequest), route: { send: this.#send } };
          await forward(request, response, origin, this.#origins, this.#settings.bodyBytesMax);
          return true;
        }),
      upgradeHandler: (edgeRequest) =>
        ifSo(edgeRequest, async () => {
          const { socket, head, record } = edgeRequest;
          record?.leaveOut();
          const origin = { ...this.#originOf(edgeRequest), socketPath: this.#path };
          await whenPresent(
            async () => joinOriginWebSocket(socket, head, origin, this.#origins, this.#settings),
            (error) => isBusyOrAbsent(error) || isCut(error),
          );
          return true;
        }),
    };
  }

  async close(): Promise<void> {
    await (await this.#pool)?.destroy();
  }

  /** The request to main. Main's answer already has the headers for the visitor, ray included. */
  #originOf({ request, span }: EdgeRequest): OriginRequest {
    const headers = headersToMain(request);
    if (span !== undefined && this.#tracer !== undefined)
      headers.push(traceHeader, this.#tracer.signed(span));
    return {
      tenant: toMain,
      method: request.method ?? "GET",
      path: request.url ?? "/",
      headers,
      addresses: [toMain],
      port: 0,
      tls: undefined,
      ray: "",
      route: undefined,
    };
  }

  readonly #send: NonNullable<OriginRequest["route"]>["send"] = async (attempt, isRepeatable, isWhole) => {
    const client = clientOf(await (this.#pool ??= this.#open()));
    const race = { started: () => {}, claim: () => undefined };
    await whenPresent(
      async () => attempt({ client, address: toMain }, race),
      (error) => (isBusyOrAbsent(error) || (isRepeatable && isCut(error))) && isWhole(),
    );
  };

  async #open(): Promise<Pool> {
    const undici = await import("undici");
    // No timeouts here, because main has its own.
    return new undici.Pool("http://main", {
      socketPath: this.#path,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: 30_000,
      maxHeaderSize: responseHeadBytesMax,
      pipelining: 1,
      allowH2: false,
    });
  }
}

/** Tries again, for some seconds, after failures that another main process may not have. */
async function whenPresent(
  attempt: () => Promise<void>,
  mayRepeat: (error: unknown) => boolean,
): Promise<void> {
  const endMs = performance.now() + absentMsMax;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      // Without a cause, it is of the visitor's request, such as 413.
      const cause = error instanceof VisitorError ? error.cause : error;
      if (error instanceof VisitorError && (cause === undefined || !mayRepeat(cause))) throw error;
      if (!mayRepeat(cause) || performance.now() > endMs) throw visitorErrors.unavailable(cause);
      await delay(againMs);
    }
  }
}
