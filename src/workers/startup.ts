import { randomUUID } from "node:crypto";
import type { Cells } from "../sandbox/cells.ts";
import { CellError } from "../sandbox/errors.ts";
import type { CellScript } from "../sandbox/process/script.ts";
import type { RuntimeScript } from "./scripts/runtime-script.ts";
import type { Started } from "./scripts/versions/version-input.ts";
import { CollectedResponse } from "./runtime/collected-response.ts";
import type { BindingRegistry } from "./binding-registry.ts";
import { cellOf } from "./runtime/script-cache.ts";

const startupCpuMs = 1000;
const responseBytesMax = 1024;

/** Runs the code of a new version until it waits for requests, before it is deployed. */
export class Startup {
  readonly #cells: { own: Cells; customers: Cells };
  readonly #memoryBytes: number;
  readonly #bindings: BindingRegistry;

  constructor(cells: { own: Cells; customers: Cells }, memoryBytes: number, bindings: BindingRegistry) {
    this.#bindings = bindings;
    this.#cells = cells;
    this.#memoryBytes = memoryBytes;
  }

  async start(script: RuntimeScript): Promise<Started> {
    const cells = script.namespace === undefined ? this.#cells.own : this.#cells.customers;
    let startedAt = performance.now();
    const tookMs = (): number => Math.ceil(performance.now() - startedAt);
    try {
      await cells.run(() => ({
        script: this.#cellScript(script),
        request: {
          method: "GET",
          path: "/load",
          headers: ["host", "startup"],
          metadata: { entrypoint: "Control" },
          body: null,
        },
        answer: { response: new CollectedResponse(responseBytesMax), headers: (raw) => [...raw] },
        hooks: () => {
          startedAt = performance.now(); // set again when a cell is available
          return { fetch: (_url, _request, response) => response.writeHead(403).end() };
        },
      }));
      return { fault: undefined, tookMs: tookMs() };
    } catch (error) {
      if (!(error instanceof CellError)) throw error;
      return { fault: faults[error.kind]?.(error), tookMs: tookMs() };
    }
  }

  #cellScript(script: RuntimeScript): CellScript {
    const cell = cellOf(script, this.#bindings);
    return {
      ...cell,
      // An id of its own: the version may not have its bindings yet, and must not be quarantined for this.
      id: `startup-${randomUUID()}`,
      owner: `startup of ${cell.owner}`,
      isTrial: true,
      cpuMs: startupCpuMs,
      memoryBytes: this.#memoryBytes,
    };
  }
}

/** Without an entry: the lack of a cell shows nothing about the script. */
const faults: Partial<Record<CellError["kind"], (error: CellError) => string>> = {
  exception: ({ message }) => message.replace(/^Failed to start Worker:\s*/, ""),
  cpu: () => "Error: Script startup exceeded CPU time limit.",
  memory: () => "Error: Script startup exceeded memory limit.",
  crashed: () => "Error: The script took its process down at startup.",
};
