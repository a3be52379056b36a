/** What a dispatcher says of one request to a customer's script. */
export interface DispatchOptions {
  limits?: { cpuMs?: number; subRequests?: number };
  /** What the outbound script is told. */
  outbound?: Record<string, unknown>;
}

/** The part of it that chooses the script and how it runs. */
export interface Dispatch {
  script: string;
  limits?: { cpuMs?: number; subRequests?: number };
}
