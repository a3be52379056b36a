import { randomBytes } from "node:crypto";
import { Resolver } from "node:dns/promises";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ApiClient } from "./api-client.ts";
import { PlatformProcess, type PlatformSettings, type ReadyPlatform } from "./child.ts";
import { checksOf, type Checks } from "./checks.ts";
import { clockOf, durationMsOf, type Duration, type TestClock } from "./clock.ts";
import { ControlClient } from "./control-client.ts";
import { edgeFetch } from "./edge-fetch.ts";
import { faultsOf } from "./faults.ts";
import { journalOf } from "./journal.ts";
import { outboundOf } from "./outbound.ts";
import { drivenScript, type ScriptPlatform } from "./scripts.ts";
import type { Seed } from "./seed.ts";
import { seededAccess, tokenVariables, type SeededAccess } from "./seeded-access.ts";
import type { Selvedge } from "./selvedge.ts";
import { introspectWorkflow, introspectWorkflowInstance } from "./workflows.ts";

/*
 * The entry of `import … from "selvedge"`. It runs on the Node of the importing program, which may be older than the
 * platform's, so it imports nothing of the platform.
 */

export type { PlatformSettings } from "./child.ts";
export type { Duration, Fired, FiredWork, TestClock as Clock } from "./clock.ts";
export type {
  FaultHandle,
  FaultInjection as Faults,
  FaultSelection,
  InjectedCellFault as CellFault,
  InjectedDnsFault as DnsFault,
  InjectedFault as Fault,
  InjectedOriginFault as OriginFault,
  InjectedResolverFault as ResolverFault,
  InjectedStorageFault as StorageFault,
} from "./faults.ts";
export type { ApiCall as Call, CallFilter, CallJournal } from "./journal.ts";
export type { AnswerOutbound, OutboundControl as Outbound, OutboundRequest } from "./outbound.ts";
export {
  defineSeed,
  type Seed,
  type SeedContent,
  type SeedRecord,
  type SeedScript,
  type SeedToken,
  type SeedZone,
} from "./seed.ts";
export type { LoggedRun, ScriptLogs } from "./script-logs.ts";
export type { BatchOutcome, DrivenScript, EventOutcome, ScriptPlace, TestMessage } from "./scripts.ts";
export type {
  WorkflowAttempt,
  WorkflowInstanceIntrospector,
  WorkflowIntrospector,
  WorkflowModifier,
  WorkflowReplay,
  WorkflowStatus,
  WorkflowStepName,
} from "./workflows.ts";
export type { PermissionName, SeededAccount, Selvedge, TestAccount } from "./selvedge.ts";

/** How a platform starts. */
export interface StartOptions {
  /** The text from which the platform derives ids; random by default (see `Selvedge.seed`). */
  seed?: string | number;
  /** The time at the start; by default the system's. */
  now?: string | Date;
  /** Whether the time passes, stands, or jumps to the next due work when nothing runs. */
  clock?: "real" | "frozen" | "skip";
  /** The content to start with: a file from `save` or `selvedge import`, or a seed, as a file or an object. */
  state?: string | Seed;
  /** "fail": `close` and the runners throw if a call had no operation. */
  onUnknown?: "fail" | "404";
  /**
   * Requests of scripts and the edge beyond this machine that the test does not answer: "block" (the default) refuses
   * them, "refuse" also makes the test fail, and "allow" sends them.
   */
  outbound?: "block" | "refuse" | "allow";
  /** Settings of the platform. By default it is ephemeral and listens on free ports of 127.0.0.1. */
  settings?: PlatformSettings;
  /** Milliseconds until the platform must be ready; 30,000 by default. */
  timeoutMs?: number;
}

const defaults = {
  ephemeral: true,
  testApi: true,
  apiRateLimit: 0,
  apiListen: "127.0.0.1:0",
  edgeListen: "127.0.0.1:0",
  edgeTlsListen: "127.0.0.1:0",
  dnsListen: "127.0.0.1:0",
  logLevel: "warn",
  // Sleeping workflows leave their cells soon, because the clock moves only after they have.
  workflowLingerMs: 100,
};

/**
 * Starts a platform as a child process, which also ends when this process ends. Throws an Error with the output of the
 * platform if it does not become ready.
 */
export async function startSelvedge(options: StartOptions = {}): Promise<Selvedge> {
  return start(options);
}

/** `access`: of the platform whose state is forked, since the state has no values of tokens. */
async function start(options: StartOptions, access?: SeededAccess): Promise<Selvedge> {
  const { settings = {}, timeoutMs = 30_000 } = options;
  const seed = String(options.seed ?? randomBytes(6).toString("hex"));
  const folder = mkdtempSync(join(tmpdir(), "selvedge-start-"));
  const readyFile = join(folder, "ready.json");
  const given = settings["apiToken"];
  const token = typeof given === "string" ? given : randomBytes(24).toString("base64url");
  const child = new PlatformProcess({
    ...defaults,
    ...settings,
    apiToken: token,
    readyFile,
    testSeed: seed,
    ...(options.now === undefined ? {} : { testNow: new Date(options.now).toISOString() }),
    ...(options.clock === undefined ? {} : { testClock: options.clock }),
    ...(options.state === undefined ? {} : { testState: stateFile(options.state, folder) }),
  });
  const stop = async (): Promise<void> => {
    await child.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const ready = { ...(await child.ready(readyFile, timeoutMs)), ...access };
    const platform = describe(ready, { ...options, seed }, token, stop);
    const { outbound: mode = "block" } = options;
    await new ControlClient(ready.control).json("PUT", "/outbound", { mode });
    return platform;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The path of a state. A seed is written to a file, and its own files are found from the working folder. */
function stateFile(state: string | Seed, folder: string): string {
  if (typeof state === "string") return resolve(state);
  const file = join(folder, "seed.json");
  const seed = { ...state, folder: resolve(state.folder ?? ".") };
  writeFileSync(file, JSON.stringify(seed, null, 2), { mode: 0o600 });
  return file;
}

function environmentFor(ready: ReadyPlatform, token: string): Record<string, string> {
  return {
    CLOUDFLARE_BASE_URL: ready.api,
    CLOUDFLARE_API_BASE_URL: ready.api,
    CLOUDFLARE_API_TOKEN: token,
    CLOUDFLARE_ACCOUNT_ID: ready.account_id,
    WRANGLER_SEND_METRICS: "false",
    SELVEDGE_EDGE_URL: ready.edge,
    SELVEDGE_DNS: ready.dns,
    SELVEDGE_CONTROL_URL: ready.control.url,
    SELVEDGE_CONTROL_TOKEN: ready.control.token,
    ...(ready.tls_authority === null ? {} : { NODE_EXTRA_CA_CERTS: ready.tls_authority }),
    ...tokenVariables(ready.tokens),
  };
}

function describe(
  ready: ReadyPlatform,
  options: StartOptions & { seed: string },
  token: string,
  stop: () => Promise<void>,
): Selvedge {
  const { hostname, port } = new URL(`dns://${ready.dns}`);
  const ca = ready.tls_authority === null ? undefined : readFileSync(ready.tls_authority, "utf8");
  const edges = { http: ready.edge, https: ready.edge_tls ?? undefined, ca };
  const control = new ControlClient(ready.control);
  const api = new ApiClient(ready.api, token);
  const env = environmentFor(ready, token);
  const { tokens = {}, accounts = {} } = ready;
  const calls = journalOf(control);
  const clock = clockOf(control);
  const outbound = outboundOf(control, options.outbound ?? "block");
  const checks = checksOf(calls, outbound, options.onUnknown === "fail");
  const host = hostname.replace(/^\[|\]$/g, "");
  let stopped: Promise<void> | undefined;
  const close = (): Promise<void> =>
    (stopped ??= (async () => {
      outbound.close();
      try {
        await checks.check();
      } finally {
        await stop();
      }
    })());
  return {
    urls: {
      api: ready.api,
      edge: ready.edge,
      edgeTls: ready.edge_tls ?? undefined,
      dashboard: ready.dashboard,
      dns: { host, port: Number(port) },
    },
    accountId: ready.account_id,
    token,
    ca,
    env,
    ...seededAccess(ready, env),
    seed: options.seed,
    control: ready.control,
    clock,
    faults: faultsOf(control),
    calls,
    outbound,
    check: async () => checks.check(),
    fetch: async (url, init) => edgeFetch(edges, new Request(url, init)),
    dig: async (name, type = "A") => dig(ready.dns, name, type),
    ...codeMethods({ control, api, accountId: ready.account_id }),
    account: async (name = "Test") => api.account(name, env),
    client: (official, apiToken = token) => new official({ baseURL: ready.api, apiToken }),
    tokenWith: async (can, { zone, expires } = {}) =>
      api.tokenWith(can, ready.account_id, { zone, expires: await expiryOf(expires, clock) }),
    ...stateMethods(control, options, token, { checks, outbound, access: { tokens, accounts } }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

const expiryOf = async (expires: Date | Duration | undefined, clock: TestClock): Promise<Date | undefined> =>
  expires === undefined || expires instanceof Date
    ? expires
    : new Date((await clock.now()).getTime() + durationMsOf(expires));

function codeMethods(
  platform: ScriptPlatform,
): Pick<
  Selvedge,
  | "script"
  | "fetchScript"
  | "runScheduled"
  | "sendQueueBatch"
  | "introspectWorkflow"
  | "introspectWorkflowInstance"
  | "kill"
> {
  const { control } = platform;
  return {
    script: (name, of) => drivenScript(platform, name, of),
    fetchScript: async (name, url, init) => drivenScript(platform, name).fetch(url, init),
    runScheduled: async (name, event) => drivenScript(platform, name).scheduled(event),
    sendQueueBatch: async (name, queue, messages) => drivenScript(platform, name).queue(queue, messages),
    introspectWorkflow: async (name, account) => introspectWorkflow(control, name, account),
    introspectWorkflowInstance: async (name, id, account) =>
      introspectWorkflowInstance(control, name, id, account),
    kill: async (of = {}) => (await control.json<{ killed: number }>("POST", "/cells/kill", of)).killed,
  };
}

interface ClockState {
  now: string;
  mode: NonNullable<StartOptions["clock"]>;
}

function stateMethods(
  control: ControlClient,
  options: StartOptions & { seed: string },
  token: string,
  { checks, outbound, access }: { checks: Checks; outbound: { forget(): void }; access: SeededAccess },
): Pick<Selvedge, "reset" | "snapshot" | "removeSnapshot" | "restore" | "save" | "fork" | "state"> {
  const nameOf = (name: string): string => `/snapshots/${encodeURIComponent(name)}`;
  const saveFrom = async (path: string, file: string): Promise<void> => {
    writeFileSync(file, await control.bytes(path), { mode: 0o600 });
  };
  return {
    async reset() {
      await checks.collect();
      await control.json("POST", "/reset");
      outbound.forget();
    },
    snapshot: async (name) => control.json("PUT", nameOf(name)),
    removeSnapshot: async (name) => control.json("DELETE", nameOf(name)),
    restore: async (name) => control.json("POST", `${nameOf(name)}/restore`),
    save: async (file) => saveFrom("/file", file),
    async fork(snapshot) {
      const folder = mkdtempSync(join(tmpdir(), "selvedge-fork-"));
      const file = join(folder, "state");
      try {
        const [content, time] =
          snapshot === undefined ? ["/file", "/clock"] : [`${nameOf(snapshot)}/file`, nameOf(snapshot)];
        await saveFrom(content, file);
        const { now, mode } = await control.json<ClockState>("GET", time);
        const settings = { ...options.settings, apiToken: token };
        return await start({ ...options, now, clock: mode, settings, state: file }, access);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
    state: async (tables) =>
      control.json("GET", tables === undefined ? "/state" : `/state?tables=${tables.join(",")}`),
  };
}

async function dig(server: string, name: string, type: string): Promise<unknown[]> {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  resolver.setServers([server]);
  const found = (await resolver.resolve(name, type)) as unknown;
  return Array.isArray(found) ? found : [found];
}
