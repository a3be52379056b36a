/** Limits of the edge listener; each stands in docs/reference/limits.md. */
export interface EdgeSettings {
  /** Location code of this node, shown in `cf-ray`. */
  colo: string;
  headerBytesMax: number;
  headerCountMax: number;
  /** Time in which a request's head must have arrived. */
  headTimeoutMs: number;
  bodyBytesMax: number;
  keepAliveTimeoutMs: number;
  /** Time without a byte in either direction after which a connection of a visitor is ended. */
  idleTimeoutMs: number;
  originConnectTimeoutMs: number;
  /** Time from the request's end to the first byte of the origin's answer. */
  originFirstByteTimeoutMs: number;
  originIdleTimeoutMs: number;
  originConnectionsMax: number;
  /** The address of this machine that connections to origins come from; the system's choice. */
  originSourceAddress?: string | undefined;
  /** Certificates of authorities, in PEM, that origins may have theirs from; those that Node trusts. */
  originCa?: readonly string[] | undefined;
  /** Origins whose connections are kept. */
  originsMax: number;
}

const mebibyte = 1024 * 1024;
export const edgeDefaults: EdgeSettings = {
  colo: "DEV",
  headerBytesMax: 32 * 1024,
  headerCountMax: 200,
  headTimeoutMs: 30_000,
  bodyBytesMax: 500 * mebibyte,
  keepAliveTimeoutMs: 75_000,
  idleTimeoutMs: 400_000,
  originConnectTimeoutMs: 10_000,
  originFirstByteTimeoutMs: 100_000,
  originIdleTimeoutMs: 100_000,
  originConnectionsMax: 128,
  originsMax: 2048,
};
