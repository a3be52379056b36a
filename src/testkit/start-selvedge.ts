import { randomBytes } from "node:crypto";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { edgeFetch } from "./edge-fetch.ts";

/*
 * The entry of `import … from "selvedge"`. It runs on the Node of the importing program, which may be older than the
 * platform's, so it imports nothing of the platform.
 */

export interface StartOptions {
  /**
   * Settings by their names in camelCase, such as `{ apiRateLimit: 5 }`. docs/reference/configuration.md lists them. By
   * default the platform is ephemeral and listens on free ports of 127.0.0.1.
   */
  settings?: Readonly<Record<string, string | number | boolean | readonly string[]>>;
  /** Milliseconds until the platform must be ready; 30,000 by default. */
  timeoutMs?: number;
}

export interface Selvedge extends AsyncDisposable {
  readonly urls: {
    /** The base URL of clients of the API. */
    readonly api: string;
    readonly edge: string;
    readonly edgeTls: string | undefined;
    readonly dashboard: string;
    readonly dns: { readonly host: string; readonly port: number };
  };
  readonly accountId: string;
  /** The owner's API token, which may do everything. */
  readonly token: string;
  /** The authority of the edge's certificates, in PEM; undefined without a listener for TLS. */
  readonly ca: string | undefined;
  /** Variables for the official clients, the Terraform provider and wrangler, to add to `process.env` of a child process. */
  readonly env: Readonly<Record<string, string>>;
  /** Sends a request for any host name to the edge. Redirects are returned, not followed. */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  /** Stops the platform. Resolves when its process has ended. */
  close(): Promise<void>;
}

/** The part of the ready file that is used here. */
interface Ready {
  api: string;
  edge: string;
  edge_tls: string | null;
  tls_authority: string | null;
  dns: string;
  dashboard: string;
  account_id: string;
}

const defaults = {
  ephemeral: true,
  apiListen: "127.0.0.1:0",
  edgeListen: "127.0.0.1:0",
  edgeTlsListen: "127.0.0.1:0",
  dnsListen: "127.0.0.1:0",
  logLevel: "warn",
};
const program = fileURLToPath(new URL("../../bin/selvedge.js", import.meta.url));
const outputCharsMax = 65_536;

/**
 * Starts a platform as a child process, which also ends when this process ends. Throws an Error with the output of the
 * platform if it does not become ready.
 */
export async function startSelvedge({
  settings = {},
  timeoutMs = 30_000,
}: StartOptions = {}): Promise<Selvedge> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-start-"));
  const readyFile = join(folder, "ready.json");
  const token =
    typeof settings["apiToken"] === "string" ? settings["apiToken"] : randomBytes(24).toString("base64url");
  const child = spawn(process.execPath, [program, "serve"], {
    env: environmentOf({ ...defaults, ...settings, apiToken: token, readyFile }),
    // The system closes the channel when this process ends, and the platform then stops.
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = async (): Promise<void> => {
    child.ref();
    child.kill();
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const ready = await readWhenReady(readyFile, child, timeoutMs);
    return describe(ready, token, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The environment of the child: ours without settings of another platform, and with the given settings. */
function environmentOf(settings: NonNullable<StartOptions["settings"]>): NodeJS.ProcessEnv {
  const own = Object.entries(settings).map(([name, value]) => [
    `SELVEDGE_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`,
    Array.isArray(value) ? value.join(",") : String(value),
  ]);
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("SELVEDGE_"));
  return Object.fromEntries([...inherited, ...own]) as NodeJS.ProcessEnv;
}

/** The file appears when every listener accepts connections. */
async function readWhenReady(file: string, child: ChildProcess, timeoutMs: number): Promise<Ready> {
  let output = "";
  let isReady = false;
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    if (isReady) process.stderr.write(text);
    else output = (output + text).slice(-outputCharsMax);
  });
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    try {
      const ready = JSON.parse(readFileSync(file, "utf8")) as Ready;
      isReady = true;
      release(child);
      return ready;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`selvedge ended with ${child.signalCode ?? child.exitCode}: ${output.trim()}`);
    if (performance.now() > deadlineMs)
      throw new Error(`selvedge was not ready after ${timeoutMs} ms: ${output.trim()}`);
    await delay(10);
  }
}

/** Lets this process end while the platform runs. */
function release(child: ChildProcess): void {
  child.unref();
  child.channel?.unref();
  (child.stderr as unknown as { unref(): void }).unref();
}

function describe(ready: Ready, token: string, stop: () => Promise<void>): Selvedge {
  const { hostname, port } = new URL(`dns://${ready.dns}`);
  const ca = ready.tls_authority === null ? undefined : readFileSync(ready.tls_authority, "utf8");
  const edges = { http: ready.edge, https: ready.edge_tls ?? undefined, ca };
  let stopped: Promise<void> | undefined;
  const close = (): Promise<void> => (stopped ??= stop());
  return {
    urls: {
      api: ready.api,
      edge: ready.edge,
      edgeTls: ready.edge_tls ?? undefined,
      dashboard: ready.dashboard,
      dns: { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) },
    },
    accountId: ready.account_id,
    token,
    ca,
    env: {
      CLOUDFLARE_BASE_URL: ready.api,
      CLOUDFLARE_API_BASE_URL: ready.api,
      CLOUDFLARE_API_TOKEN: token,
      CLOUDFLARE_ACCOUNT_ID: ready.account_id,
      WRANGLER_SEND_METRICS: "false",
      ...(ready.tls_authority === null ? {} : { NODE_EXTRA_CA_CERTS: ready.tls_authority }),
    },
    fetch: async (url, init) => edgeFetch(edges, new Request(url, init)),
    close,
    [Symbol.asyncDispose]: close,
  };
}
