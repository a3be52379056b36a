import { useEffect, useState } from "preact/hooks";
import { answerOf, send } from "../../core/client.ts";
import { observeTimes, type ServerTimes } from "./server-times.ts";

/** A picture that was read, with its size and the time that it took. */
export interface Delivered {
  url: string;
  size: number;
  type: string;
  ms: number;
  width: number;
  height: number;
  /** Undefined if they were not asked for, or the browser may not read them. */
  times: ServerTimes | undefined;
}

/** Reads a picture from the edge, in the best format that this browser shows. */
export const fromEdge = async (url: string, signal: AbortSignal): Promise<Response> =>
  accepting("image/avif,image/webp,*/*", url, signal);

/** Reads a picture from the edge, as browsers get it that show no newer format. */
export const fromEdgePlain = async (url: string, signal: AbortSignal): Promise<Response> =>
  accepting("*/*", url, signal);

/** Reads a picture from the edge, and not from the cache of this browser, whose times would be those of before. */
export const fromEdgeAgain = async (url: string, signal: AbortSignal): Promise<Response> =>
  accepting("image/avif,image/webp,*/*", url, signal, "no-store");

async function accepting(
  accept: string,
  url: string,
  signal: AbortSignal,
  cache: RequestCache = "default",
): Promise<Response> {
  const response = await fetch(url, { signal, cache, headers: { accept } });
  if (!response.ok) throw new Error((await response.text()) || `The edge answered ${response.status}`);
  return response;
}

/** Reads an original over the API. */
export async function fromApi(path: string, signal: AbortSignal): Promise<Response> {
  const response = await send(path, { signal });
  if (!response.ok) await answerOf(response);
  return response;
}

const waitMs = 150;

/** A picture at an address. The last one stays until the next one is loaded. Without an address, nothing is read. */
export function useDelivered(
  address: string | undefined,
  read: typeof fromEdge = fromEdge,
): { shown: Delivered | undefined; fault: string | undefined } {
  const [shown, setShown] = useState<Delivered | undefined>(undefined);
  const [fault, setFault] = useState<string | undefined>(undefined);
  useEffect(() => {
    if (address === undefined) return;
    const controller = new AbortController();
    const show = async (): Promise<void> => {
      try {
        const timed = read === fromEdgeAgain ? address : undefined;
        const next = await measured(async () => read(address, controller.signal), timed);
        if (controller.signal.aborted) return URL.revokeObjectURL(next.url);
        setShown(next);
        setFault(undefined);
      } catch (error) {
        if (!controller.signal.aborted) setFault((error as Error).message);
      }
    };
    const timer = setTimeout(() => void show(), waitMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [address]);
  useEffect(() => () => URL.revokeObjectURL(shown?.url ?? ""), [shown]);
  return { shown, fault };
}

/** Reads a picture, and measures it. `timed`: the address, if the times of the edge are read too. The URL is to be revoked. */
export async function measured(read: () => Promise<Response>, timed?: string): Promise<Delivered> {
  const observed = timed === undefined ? undefined : observeTimes(timed);
  try {
    const startedAt = performance.now();
    const blob = await (await read()).blob();
    const ms = performance.now() - startedAt;
    const { width, height } = await createImageBitmap(blob);
    const times = await observed?.end();
    return { url: URL.createObjectURL(blob), size: blob.size, type: blob.type, ms, width, height, times };
  } finally {
    observed?.cancel();
  }
}
