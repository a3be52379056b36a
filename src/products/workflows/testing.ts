import type { CellScript } from "../../sandbox/process/script.ts";
import { cellDefaults, type CellSettings } from "../../sandbox/settings.ts";
import { quiet } from "../../sandbox/testing.ts";
import { openStorage, type Storage } from "../../platform/storage/storage.ts";
import { clock } from "../../platform/timers/clock.ts";
import { WorkflowEngine } from "./engine/engine.ts";
import type { InstanceRow } from "./instance.ts";
import { WorkflowCells, type WorkflowCellsOptions, type Prepared } from "./cells/workflow-cells.ts";
import { instanceStore } from "./store/store.ts";
import { isFinal } from "./transitions.ts";
import { decode } from "./worker/codec.ts";

/**
 * An engine with real cells. All instances are of one class `Main`, whose `run(event, step)` has the given
 * body.
 */
export class EngineHarness {
  readonly engine: WorkflowEngine;
  readonly cells: WorkflowCells;
  readonly storage: Storage;
  /** Paths of the requests that scripts made. Each request is answered with its index. */
  readonly requests: string[] = [];
  /** Paths whose requests wait for their answer. */
  readonly #held = new Map<string, Promise<void>>();
  readonly #store: ReturnType<typeof instanceStore>;

  private constructor(storage: Storage, code: string, options: HarnessOptions) {
    const script: CellScript = {
      id: "workflow@1",
      owner: "workflow",
      accountId: "account",
      profile: "script",
      hasWorkflows: true,
      mainModule: "main.js",
      modules: [{ name: "main.js", kind: "js", content: code }],
      compatibilityDate: options.compatibilityDate ?? "2026-11-01",
      compatibilityFlags: [],
      cpuMs: options.cpuMs ?? 30_000,
      memoryBytes: options.memoryBytes ?? 1024 ** 3,
      env: { GREETING: "hello" },
    };
    this.storage = storage;
    this.#store = instanceStore(storage, "test");
    this.cells = new WorkflowCells({
      settings: { ...cellDefaults, shared: 1, stallCpuMs: 1000, ...options.cells },
      prepare: async () => ({
        script,
        isThere: () => true,
        trace: options.trace ?? ((): undefined => undefined),
        hooks: () => ({
          fetch: (url, request, response) => {
            this.requests.push(url.pathname);
            const count = String(this.requests.length);
            const isFree = this.#held.get(url.pathname) ?? Promise.resolve();
            request.resume().on("end", () => void isFree.then(() => response.end(count)));
          },
        }),
      }),
      logger: quiet,
      ...(options.idle === undefined ? {} : { idle: options.idle }),
    });
    const version = {
      rid: 1,
      workflowName: "test",
      stepsMax: options.stepsMax ?? 10_000,
      code: { accountId: "a", scriptName: "s", scriptVersion: "v", className: "Main" },
    };
    this.engine = new WorkflowEngine({
      store: this.#store,
      cells: this.cells,
      clock,
      version: async () => version,
      latestVersion: async () => version,
      concurrency: options.concurrency ?? 1000,
      limits: { lingerMs: options.lingerMs ?? 100, valueBytesMax: 2 ** 20, retryDelayMs: 10 },
      onFault: (error) => {
        if (options.onFault !== undefined) options.onFault(error);
        else if (options.isFaultExpected !== true) throw error;
      },
    });
    this.cells.listener = this.engine.calls;
  }

  static async start(run: string, options: HarnessOptions = {}): Promise<EngineHarness> {
    const storage = options.storage ?? (await openStorage("sqlite::memory:"));
    await addWorkflow(storage);
    const code = `import { WorkflowEntrypoint } from "cloudflare:workers";
import { NonRetryableError } from "cloudflare:workflows";
const visit = async (path) => Number(await (await fetch("http://observer/" + path)).text());
export class Main extends WorkflowEntrypoint { async run(event, step) { ${run} } }
export default {};`;
    const harness = new EngineHarness(storage, options.code ?? code, options);
    await harness.engine.start();
    return harness;
  }

  /** Lets requests of a path wait for their answer until the returned function is called. */
  hold(path: string): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held.set(path, promise);
    return resolve;
  }

  async create(id: string, params: unknown = {}): Promise<InstanceRow> {
    const [row] = await this.engine.operations.create(0, [
      {
        accountId: "a",
        workflowRid: 1,
        versionRid: 1,
        id,
        params: `j${JSON.stringify(params)}`,
        trigger: "api",
        creatorTrace: null,
        successRetentionMs: 86_400_000,
        errorRetentionMs: 86_400_000,
      },
    ]);
    return row!;
  }

  async row(rid: number): Promise<InstanceRow> {
    const [row] = await this.#store.instances([rid]);
    return row!;
  }

  /** Resolves once `wanted` holds; checks after each durable change of the instance. */
  async until(rid: number, wanted: (row: InstanceRow) => boolean, timeoutMs = 60_000): Promise<InstanceRow> {
    const end = Date.now() + timeoutMs;
    for (;;) {
      const row = await this.row(rid);
      if (wanted(row)) return row;
      if (Date.now() > end) throw new Error(`The instance is still ${row.status}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async ended(rid: number, timeoutMs?: number): Promise<{ status: string; output: unknown; error: unknown }> {
    const row = await this.until(rid, ({ status }) => isFinal(status), timeoutMs);
    return {
      status: row.status,
      output: row.output === null ? undefined : decode(row.output),
      error: row.error === null ? undefined : (JSON.parse(row.error) as unknown),
    };
  }

  async journal(rid: number) {
    const { run } = await this.row(rid);
    return this.#store.journal(rid, run);
  }

  async close(): Promise<void> {
    await this.engine.stop();
    await this.cells.close();
    await this.storage.close();
  }
}

/** Creates workflow 1 on SQLite; an instance needs an existing workflow. */
export async function addWorkflow(storage: Storage): Promise<void> {
  await storage.direct!((database) =>
    database.exec(`
      insert or ignore into accounts (id, name, type, settings, has_billing, created_on)
        values ('a', 'A', 'standard', '{}', 1, 1);
      insert or ignore into workflows (rid, id, account_id, name, script_name, class_name, created_on, modified_on)
        values (1, 'w', 'a', 'test', 's', 'Main', 1, 1)`),
  );
}

export interface HarnessOptions {
  storage?: Storage;
  /** The whole script, used instead of `run`. */
  code?: string;
  compatibilityDate?: string;
  cells?: Partial<CellSettings>;
  concurrency?: number;
  lingerMs?: number;
  idle?: WorkflowCellsOptions["idle"];
  trace?: Prepared["trace"];
  stepsMax?: number;
  isFaultExpected?: boolean;
  onFault?: (error: unknown) => void;
  cpuMs?: number;
  memoryBytes?: number;
}
