import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import type { Metric } from "prom-client";
import type { ApiChecks, BoundOperation } from "./control/api/server/app.ts";
import type { ApiError, ErrorCodes } from "./control/api/errors.ts";
import type { Operation } from "./control/api/operation.ts";
import type { VisitorError } from "./edge/http/errors.ts";
import type { EdgeHandler, HandlerPhase, UpgradeHandler } from "./edge/request/handlers.ts";
import type { DomainError } from "./platform/domain-error.ts";
import type { Reserved } from "./platform/listen/reserve.ts";
import type { OwnProcess } from "./platform/processes/own-process.ts";
import type { Declaration, EmptyDeclaration } from "./declaration.ts";
import type { ConfigOf } from "./platform/config/setting.ts";
import type { Config } from "./platform/config/settings.ts";
import type { BindingDeclarations } from "./workers/binding-registry.ts";

/** The parameters of every capability, in addition to the services of those that it needs. */
export interface Platform {
  config: Config;
  logger: Logger;
  apiChecks: ApiChecks;
  /** The resources that the caller has reserved already. */
  reserved: Reserved | undefined;
  /** The role of this process in its node. */
  own: OwnProcess;
}

/**
 * The processes that a capability is part of, if the node has edge processes: main, the edge processes, or all. Work
 * that no caller asks for (`run`) and operations are those of main.
 */
export type Processes = "main" | "edge" | "all";

/** Ends work that a capability began. Work in progress has `deadlineMs` left. */
export type Stop = (deadlineMs: number) => Promise<void> | void;

/** Work of its own that a capability began. */
export interface Work {
  /**
   * Gives back leases and claims, so that other nodes take them over at once, and takes no new ones. Comes first
   * in a stop, maybe long before its end; everything is still served.
   */
  giveBack?(): Promise<void> | void;
  stop: Stop;
}

/** A capability that listens. */
export interface Opened {
  /** Asks clients to open their next connections elsewhere. Everything is still served. */
  announceEnd?(): void;
  /** Reads files of the configuration again. */
  reload?(): void;
  close: Stop;
}

/** Handles a WebSocket upgrade on the listener of the management API. */
export type ApiUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** A handler of requests at the edge. `phase` decides its position among the handlers. */
export interface PhaseHandler {
  phase: HandlerPhase;
  handler: EdgeHandler;
  upgradeHandler?: UpgradeHandler;
}

/** The declarations of all capabilities for others. They are complete when the first capability loads. */
export interface Contributions {
  operations: readonly BoundOperation[];
  /** Path parameters whose values are ids of 32 hexadecimal digits. */
  idParameters: ReadonlySet<string>;
  apiUpgrade: ApiUpgrade | undefined;
  /** In the order of their phases. */
  edgeHandlers: readonly PhaseHandler[];
  bindings: BindingDeclarations;
  /** Checks that reject while a part is not ready, by the part's name. */
  health: Readonly<Record<string, () => Promise<void>>>;
  /** Clears cached rows that no storage listener invalidates, after the test kit has replaced the database. */
  reset: () => Promise<void>;
  /** Work that becomes due at a time, by the names of capabilities. */
  due: Readonly<Record<string, DueWork>>;
  /** Removes what has expired, as timers do within minutes. Resolves with the numbers since the start, by kind. */
  expire: () => Promise<Readonly<Record<string, number>>>;
  /** Resolves with the metrics of all capabilities. Loads prom-client. */
  metrics(): Promise<Metric[]>;
}

/** Work that becomes due at a time of the clock. The test kit asks for it when it moves the clock. */
export interface DueWork {
  /** When the next work becomes due, in milliseconds since 1970; undefined if none is waiting. */
  next(): Promise<number | undefined>;
  /** Starts the work that is due now. Returns a description of each piece. */
  run(): Promise<readonly object[]>;
  /** The pieces of work in progress. */
  inFlight(): number;
  /** The number of runs that schedules have until a time, which are known before any of them. */
  scheduled?(untilMs: number): number;
  /** Stores changes that it would store soon. */
  store?(): Promise<void>;
}

/** The contributions of a capability, bound to its services. */
interface Bound<S> {
  /** The services that it created. */
  created: S;
  operations: readonly BoundOperation[];
  apiUpgrade: ApiUpgrade | undefined;
  edgeHandlers: readonly PhaseHandler[];
  bindings: BindingDeclarations;
  health: Record<string, () => Promise<void>>;
  due: DueWork | undefined;
  expire(): Promise<Readonly<Record<string, number>>>;
  metrics(): Promise<readonly Metric[]>;
  reset(): Promise<void>;
  load(contributions: Contributions): Promise<void>;
  listen(contributions: Contributions): Promise<Opened | void>;
  run(): Promise<Work | Stop | void>;
  reload(): Promise<void>;
  close(): Promise<void>;
}

/** Errors for callers. The codes of errors of a domain are in a table of the API. */
export interface ErrorTable {
  title: string;
  errors: Readonly<Record<string, (...details: never[]) => ApiError | DomainError | VisitorError>>;
  codes?: ErrorCodes;
}

/** A part of the platform that creates the services `S`. Declare one with `capability`. */
export interface Capability<S extends object = object> {
  readonly name: string;
  readonly needs: readonly Capability[];
  readonly declares: Declaration | undefined;
  /** Loads its operations, which edge processes do not have. */
  readonly operations: () => Promise<readonly Operation[]>;
  readonly errors: readonly ErrorTable[];
  readonly idParameters: readonly string[];
  readonly processes: Processes;
  /** Passes requests for its handlers from edge processes to main. */
  readonly atEdges: Capability | undefined;
  /** Whether edge processes must pass all requests to main, because it has handlers there and no `atEdges`. */
  readonly takesAll: boolean;
  /** Creates the services. `needed` has the services of all `needs`. */
  begin(needed: object, platform: Platform): Promise<Bound<S>>;
}

/** The services of several capabilities, by name. */
export type ServicesOf<N extends readonly Capability[], Before = unknown> = N extends readonly [
  Capability<infer S>,
  ...infer Rest extends readonly Capability[],
]
  ? ServicesOf<Rest, Before & S>
  : Before;

/** The services that the parts of a capability receive: its own, and those of the capabilities that it needs. */
type Given<N extends readonly Capability[], S, D extends Declaration> = Needed<N, D> & NoInfer<S>;
/** In addition to the services of its needs, a capability receives the configuration with its own settings. */
type Needed<N extends readonly Capability[], D extends Declaration> = ServicesOf<N> &
  Platform & { config: NoInfer<ConfigOf<D["settings"]>> };

interface Declared<N extends readonly Capability[], S extends object, O, D extends Declaration> {
  name: string;
  /** Its settings, tables, migrations and kinds of change, which are in the file declaration.ts of its folder. */
  declares?: D;
  /** The capabilities whose services it uses. They are created, loaded and opened before it, and closed after it. */
  needs: N;
  /** Default: main. The needs of a capability are part of its processes. */
  processes?: Processes;
  /**
   * For a capability of main with `edgeHandlers`: the capability that passes requests for them from edge processes to
   * main. Without it, edge processes pass all requests.
   */
  atEdges?: Capability;
  /** Creates the services, under the names that other capabilities see. */
  create(needed: Needed<N, D>): S | Promise<S>;
  /**
   * They may use the services that it creates and those that it needs. Import their modules here, not with the module of
   * the capability, because edge processes do not load them.
   */
  operations?(): Promise<readonly Operation<O>[]>;
  /** Its errors, for the reference page and for the tests of messages. */
  errors?: readonly ErrorTable[];
  /** The parameters in paths of its operations that must be ids. */
  idParameters?: readonly string[];
  apiUpgrade?(services: Given<N, S, D>): ApiUpgrade;
  edgeHandlers?(services: Given<N, S, D>): readonly PhaseHandler[];
  bindings?(services: Given<N, S, D>): BindingDeclarations;
  health?(services: Given<N, S, D>): Record<string, () => Promise<void>>;
  /** Work that becomes due at a time. */
  due?(services: Given<N, S, D>): DueWork;
  /** Removes what has expired by now. Resolves with the numbers since the start, by kind. */
  expire?(services: Given<N, S, D>): Promise<Readonly<Record<string, number>>>;
  /** Clears cached rows that its storage listeners do not invalidate. The test kit has replaced the database. */
  reset?(services: Given<N, S, D>): Promise<void> | void;
  /** Called only if metrics are configured. Import prom-client here, not with the module. */
  metrics?(services: Given<N, S, D>): Promise<readonly Metric[]>;
  /** Loads its rows from storage. All capabilities exist by then. */
  load?(services: Given<N, S, D>, contributions: Contributions): Promise<void> | void;
  /** Opens listening sockets. All capabilities are loaded by then. */
  listen?(services: Given<N, S, D>, contributions: Contributions): Promise<Opened | void>;
  /** Starts work that no caller asks for. All listeners are open by then. */
  run?(services: Given<N, S, D>): Promise<Work | Stop | void> | Work | Stop | void;
  /** Reads files of the configuration again. */
  reload?(services: Given<N, S, D>): Promise<void>;
  /** Frees what `create` and `load` have made. */
  close?(services: Given<N, S, D>): Promise<void> | void;
}

/** The type of a declaration whose operations use services that it neither creates nor needs: no capability. */
interface NotServed<Names> {
  operationsUse: Names;
}

/**
 * Declares a capability: everything that the platform needs of one of its parts. The compiler refuses its use
 * if its operations use other services than its own and those of its needs.
 */
export function capability<
  const N extends readonly Capability[],
  S extends object,
  O = unknown,
  D extends Declaration = EmptyDeclaration,
>(
  declared: Declared<N, S, O, D>,
): ServicesOf<N> & S extends O ? Capability<S> : NotServed<Exclude<keyof O, keyof (ServicesOf<N> & S)>> {
  const { name, needs, errors = [], idParameters = [], processes = "main" } = declared;
  const operations = async (): Promise<readonly Operation<O>[]> => declared.operations?.() ?? [];
  const hasHandlers = declared.edgeHandlers !== undefined;
  const complete: Capability<S> = {
    name,
    needs,
    declares: declared.declares,
    operations,
    errors,
    idParameters,
    processes,
    atEdges: declared.atEdges,
    takesAll: processes === "main" && hasHandlers && declared.atEdges === undefined,
    async begin(needed, platform) {
      const given = { ...platform, ...needed } as Needed<N, D>; // start() passes the services of all needs
      const created = await declared.create(given);
      const services: Given<N, S, D> = { ...given, ...created };
      const ofMain = platform.own.role === "edge" ? [] : await operations();
      return {
        created,
        operations: ofMain.map((operation) => ({ operation, services })),
        apiUpgrade: declared.apiUpgrade?.(services),
        edgeHandlers: declared.edgeHandlers?.(services) ?? [],
        bindings: declared.bindings?.(services) ?? {},
        health: declared.health?.(services) ?? {},
        due: declared.due?.(services),
        expire: async () => declared.expire?.(services) ?? {},
        reset: async () => declared.reset?.(services),
        metrics: async () => declared.metrics?.(services) ?? [],
        load: async (contributions) => declared.load?.(services, contributions),
        listen: async (contributions) => declared.listen?.(services, contributions),
        run: async () => declared.run?.(services),
        reload: async () => declared.reload?.(services),
        close: async () => declared.close?.(services),
      };
    },
  };
  return complete as never; // the compiler cannot follow the condition in the type of the result
}

export type { Bound as BoundCapability };
