/** Options of a dispatcher for one request to a customer's script. */
export interface DispatchOptions {
  limits?: { cpuMs?: number; subRequests?: number };
  /** Parameters for the outbound script. */
  outbound?: Record<string, unknown>;
}

/** The part that chooses the script and its limits. */
export interface Dispatch {
  script: string;
  limits?: { cpuMs?: number; subRequests?: number };
}
