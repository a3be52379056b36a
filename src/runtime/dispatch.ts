/** What a dispatcher says of one request to a customer's script. */
export interface DispatchOptions {
  limits?: { cpuMs?: number; subRequests?: number };
  /** What the outbound script is told. */
  outbound?: Record<string, unknown>;
}

export interface Dispatch extends DispatchOptions {
  script: string;
}
