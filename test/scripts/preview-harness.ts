import { expect, vi } from "vitest";
import { temporaryFolder } from "../helpers/process.ts";
import { ownerToken, type ApiResponse } from "../helpers/server.ts";
import { longer } from "../helpers/waits.ts";
import { previewForm, startHosting, startOutside, type Hosting, type Outside } from "../runtime/platform.ts";

export const deployed = `export default {
  async fetch(request, env) {
    if (new URL(request.url).pathname === "/stored") return new Response(await env.STORE.get("note"));
    return new Response("deployed " + (globalThis.secret ?? ""));
  },
};`;

interface Asked {
  request?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
  script?: string;
  account?: string;
  of?: Hosting;
  signal?: AbortSignal;
}

export const fetching = (body: string): string =>
  `export default { async fetch(request, env, ctx) { ${body} } };`;

/** A platform with a deployed script, and an outside that it can ask. */
export class PreviewHarness {
  readonly hosting: Hosting;
  readonly outside: Outside;
  /** The id of the key-value namespace of the deployed script. */
  readonly kv: string;
  /** The requests to /hold that wait for `release`. */
  readonly #held: (() => void)[];

  private constructor(hosting: Hosting, outside: Outside, kv: string, held: (() => void)[]) {
    this.hosting = hosting;
    this.outside = outside;
    this.kv = kv;
    this.#held = held;
  }

  static async start(): Promise<PreviewHarness> {
    const hosting = await startHosting({
      ephemeral: false,
      dataDir: temporaryFolder(),
      privateNetworks: "all",
      scriptCpuMs: 1000,
    });
    const held: (() => void)[] = [];
    const outside = await startOutside((request, response) => {
      if (request.url === "/hold") held.push(() => response.end("released"));
      else response.end(`outside got ${String(request.headers["x-from"] ?? "")}`);
    });
    const kv = await hosting.createKv("notes", { note: "of the account" });
    await hosting.deploy("shop", {
      code: deployed,
      bindings: [
        { type: "kv_namespace", name: "STORE", namespace_id: kv },
        { type: "secret_text", name: "KEY", text: "s3cret" },
        { type: "plain_text", name: "MODE", text: "live" },
      ],
    });
    return new PreviewHarness(hosting, outside, kv, held);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.hosting.close(0);
    await this.outside.close();
  }

  async preview(code: string, asked: Asked = {}): Promise<Pick<ApiResponse, "status" | "body">> {
    const { request = {}, metadata = {}, script = "shop", of = this.hosting, signal } = asked;
    const account = asked.account ?? of.account;
    const path = `/accounts/${account}/workers/scripts/${script}/edge/preview`;
    const response = await fetch(`${of.ready.api}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${ownerToken}` },
      body: previewForm(code, { timeout_ms: 30_000, ...metadata }, request),
      ...(signal && { signal }),
    });
    return { status: response.status, body: (await response.json()) as ApiResponse["body"] };
  }

  /** The result of a preview that must run. */
  async result(code: string, asked?: Asked): Promise<ApiResponse["body"]["result"]> {
    const { body } = await this.preview(code, asked);
    expect(body.errors).toEqual([]);
    return body.result;
  }

  running(of = this.hosting): number {
    return of.services.singleUseCells.running;
  }

  /** A preview that has begun, and waits for the outside until `release`. */
  async holding(
    asked: Asked = {},
  ): Promise<{ ended: ReturnType<PreviewHarness["preview"]>; release: () => void }> {
    const before = this.#held.length;
    const code = fetching(`return new Response(await (await fetch("${this.outside.url}/hold")).text());`);
    const ended = this.preview(code, asked);
    await vi.waitFor(() => expect(this.#held.length).toBe(before + 1), longer({}));
    return { ended, release: this.#held[before]! };
  }
}
