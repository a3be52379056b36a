import { useAsync } from "../../core/async.ts";
import type { Query } from "../../core/cache.ts";
import { answerOf, get, send } from "../../core/client.ts";
import { hexOf, textOf } from "./bytes.ts";

/** The value of a key, with its metadata and expiration. */
export interface Stored {
  blob: Blob;
  /** Undefined if the value is not text, or is too long to be shown unasked. */
  text: string | undefined;
  /** The first bytes of a value that is not text, as in a hex dump. */
  hex: string | undefined;
  metadata: unknown;
  /** In seconds since 1970. */
  expiration: number | undefined;
}

/** Longer values are shown only when a person asks. */
export const shownBytesMax = 256 * 1024;
const hexBytes = 512;

/** Reads the value of a key. */
export const useStored = (
  account: string,
  namespace: string,
  name: string,
  isAsked: boolean,
): Query<Stored> =>
  useAsync([account, namespace, name, isAsked].join(" "), (signal) =>
    readStored(account, namespace, name, isAsked, signal),
  );

async function readStored(
  account: string,
  namespace: string,
  name: string,
  isAsked: boolean,
  signal: AbortSignal,
): Promise<Stored> {
  const base = `/accounts/${account}/storage/kv/namespaces/${namespace}`;
  const key = encodeURIComponent(name);
  const response = await send(`${base}/values/${key}`, { signal });
  if (!response.ok) await answerOf(response);
  const blob = await response.blob();
  const { result: metadata } = await get<unknown>(`${base}/metadata/${key}`, signal);
  const expiration = response.headers.get("expiration");
  const isShown = isAsked || blob.size <= shownBytesMax;
  const text = isShown ? textOf(new Uint8Array(await blob.arrayBuffer())) : undefined;
  const hex =
    isShown && text === undefined
      ? hexOf(new Uint8Array(await blob.slice(0, hexBytes).arrayBuffer()))
      : undefined;
  return { blob, text, hex, metadata, expiration: expiration === null ? undefined : Number(expiration) };
}
