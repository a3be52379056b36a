import { mebibyte } from "../../platform/bytes.ts";
import type { Config } from "../../platform/config/settings.ts";

/** Limits of the edge listener, listed in docs/reference/limits.md. */
export interface EdgeSettings {
  /** Location code of this node, shown in `cf-ray`. */
  colo: string;
  headerBytesMax: number;
  headerCountMax: number;
  /** Longest time to receive a request's head. */
  headTimeoutMs: number;
  bodyBytesMax: number;
  /** Bytes of a body that rules see; plans may allow less. */
  ruleBodyBytesMax: number;
  keepAliveTimeoutMs: number;
  /** Time without traffic in either direction after which a visitor's connection is closed. */
  idleTimeoutMs: number;
  originConnectTimeoutMs: number;
  /** Longest time from the end of a request to the first byte of the origin's response. */
  originFirstByteTimeoutMs: number;
  originIdleTimeoutMs: number;
  /** How long a visitor may stop to read a response while other requests wait for its connection to the origin. */
  visitorStallTimeoutMs: number;
  originConnectionsMax: number;
  /** Local address for connections to origins; by default the system chooses. */
  originSourceAddress?: string | undefined;
  /** CA certificates in PEM for origins; by default those of Node. */
  originCa?: readonly string[] | undefined;
  /** Origins whose connections are kept open. */
  originsMax: number;
}

/** The limits of the edge that no setting changes, and the defaults of the others. */
export const edgeDefaults: EdgeSettings = {
  colo: "DEV",
  headerBytesMax: 32 * 1024,
  headerCountMax: 200,
  headTimeoutMs: 30_000,
  bodyBytesMax: 500 * mebibyte,
  ruleBodyBytesMax: mebibyte,
  keepAliveTimeoutMs: 75_000,
  idleTimeoutMs: 400_000,
  originConnectTimeoutMs: 10_000,
  originFirstByteTimeoutMs: 100_000,
  originIdleTimeoutMs: 100_000,
  visitorStallTimeoutMs: 5000,
  originConnectionsMax: 128,
  originsMax: 2048,
};

/** The limits of the edge: the defaults, and the configured values. */
export const edgeSettingsOf = async ({
  colo,
  originSourceAddress,
  originCa,
  ruleBodyKilobytes,
}: Config): Promise<EdgeSettings> => ({
  ...edgeDefaults,
  colo,
  ruleBodyBytesMax: ruleBodyKilobytes * 1024,
  originSourceAddress,
  originCa: originCa.length === 0 ? undefined : await trusted(originCa),
});

/** Node's trusted authorities and those in the files, in PEM. */
async function trusted(files: readonly string[]): Promise<string[]> {
  const [{ rootCertificates }, { readFileSync }] = await Promise.all([import("node:tls"), import("node:fs")]);
  return [...rootCertificates, ...files.map((file) => readFileSync(file, "utf8"))];
}
