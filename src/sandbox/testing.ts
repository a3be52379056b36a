import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import pino from "pino";
import { CountedBody } from "../edge/http/body.ts";
import { Cells } from "./cells.ts";
import { CellError } from "./errors.ts";
import type { RunHooks } from "./gateway/run-hooks.ts";
import type { CellScript } from "./process/script.ts";
import { cellDefaults, type CellSettings } from "./settings.ts";
import { expect } from "vitest";

/** A logger that logs nothing, for tests that cause faults. */
export const quiet = pino({ level: "silent" });

/** A snippet with this code. */
export const snippet = (owner: string, code: string, more: Partial<CellScript> = {}): CellScript => ({
  id: `${owner}@1`,
  owner,
  accountId: "account",
  profile: "snippet",
  mainModule: "snippet.js",
  modules: [{ name: "snippet.js", kind: "js", content: code }],
  compatibilityDate: "2026-11-01",
  compatibilityFlags: [],
  cpuMs: 50,
  memoryBytes: 64 * 1024 * 1024,
  env: {},
  ...more,
});

const bodyBytesMax = 64 * 1024 * 1024;

export interface CellResponse {
  status: number;
  headers: Headers;
  text: string;
}

/** Cells behind a plain HTTP server: a request to `/name/…` runs the script of that name. */
export class CellsHarness {
  readonly cells: Cells;
  readonly scripts = new Map<string, CellScript>();
  /** Answers the scripts' own fetches with `origin of URL`. */
  hooks: RunHooks = {
    fetch: (url, request, response) => {
      request.resume().on("end", () => response.end(`origin of ${url.href}`));
    },
  };
  readonly #server: Server;

  constructor(settings: Partial<CellSettings> = {}) {
    this.cells = new Cells({ ...cellDefaults, shared: 1, ...settings }, quiet);
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    expect(this.port).toBeGreaterThan(0);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  add(...scripts: CellScript[]): void {
    for (const script of scripts) this.scripts.set(script.owner, script);
  }

  async fetch(path: string, init: RequestInit = {}): Promise<CellResponse> {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      redirect: "manual",
      ...init,
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    await this.cells.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, name = "", ...rest] = (request.url ?? "").split("/");
    const script = this.scripts.get(name);
    if (script === undefined) {
      response.writeHead(404).end();
      return;
    }
    const hasBody = !["GET", "HEAD"].includes(request.method!);
    const headers = ["host", "site.example", "x-selvedge-proto", "https"];
    const length = request.headers["content-length"];
    if (length !== undefined) headers.push("content-length", length);
    const body = hasBody ? new CountedBody(request, bodyBytesMax) : null;
    try {
      await this.cells.run(() => ({
        script,
        request: {
          method: request.method!,
          path: `/${rest.join("/")}`,
          headers,
          cf: '{"colo":"TST"}',
          body,
        },
        answer: { response, headers: (raw) => [...raw] },
        hooks: () => this.hooks,
      }));
    } catch (error) {
      const kind = error instanceof CellError ? error.kind : "other";
      response.writeHead(500, { "x-kind": kind }).end((error as Error).message);
    }
  }
}
