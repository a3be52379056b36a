import { randomUUID } from "node:crypto";
import type { RunOptions } from "../sandbox/cell.ts";
import type { Cells } from "../sandbox/cells.ts";
import { CellError } from "../sandbox/errors.ts";
import type { CellScript } from "../sandbox/process/script.ts";
import type { RuntimeScript } from "./scripts/runtime-script.ts";
import type { Started } from "./scripts/versions/version-input.ts";
import { CollectedResponse } from "./runtime/collected-response.ts";
import type { BindingRegistry } from "./binding-registry.ts";
import { cellOf } from "./runtime/script-cache.ts";

/** CPU time that the code of an upload may use until it waits for requests. */
export const startupCpuMs = 1000;
const responseBytesMax = 1024;

/** A run that only starts the code. `begins` is called when a cell is available. */
export const startupRun = (script: CellScript, begins: () => void): RunOptions => ({
  script,
  request: {
    method: "GET",
    path: "/load",
    headers: ["host", "startup"],
    metadata: { entrypoint: "Control" },
    body: null,
  },
  answer: { response: new CollectedResponse(responseBytesMax), headers: (raw) => [...raw] },
  hooks: () => {
    begins();
    return { fetch: (_url, _request, response) => response.writeHead(403).end() };
  },
});

/** Why the code did not start, for its author; undefined if the lack of a cell shows nothing about it. */
export const startupFault = (error: CellError): string | undefined => faults[error.kind]?.(error);

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
      await cells.run(() => startupRun(this.#cellScript(script), () => (startedAt = performance.now())));
      return { fault: undefined, tookMs: tookMs() };
    } catch (error) {
      if (!(error instanceof CellError)) throw error;
      return { fault: startupFault(error), tookMs: tookMs() };
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

const faults: Partial<Record<CellError["kind"], (error: CellError) => string>> = {
  exception: ({ message }) => message.replace(/^Failed to start Worker:\s*/, ""),
  cpu: () => "Error: Script startup exceeded CPU time limit.",
  memory: () => "Error: Script startup exceeded memory limit.",
  crashed: () => "Error: The script took its process down at startup.",
};
