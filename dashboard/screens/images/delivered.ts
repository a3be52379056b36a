import { useEffect, useState } from "preact/hooks";
import { answerOf, send } from "../../core/client.ts";

/** A picture that was read, with its size and the time that it took. */
export interface Delivered {
  url: string;
  size: number;
  type: string;
  ms: number;
  width: number;
  height: number;
}

/** Reads a picture from the edge, in the best format that this browser shows. */
export const fromEdge = async (url: string, signal: AbortSignal): Promise<Response> =>
  accepting("image/avif,image/webp,*/*", url, signal);

/** Reads a picture from the edge, as browsers get it that show no newer format. */
export const fromEdgePlain = async (url: string, signal: AbortSignal): Promise<Response> =>
  accepting("*/*", url, signal);

async function accepting(accept: string, url: string, signal: AbortSignal): Promise<Response> {
  const response = await fetch(url, { signal, headers: { accept } });
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

/** A picture at an address. The last one stays until the next one is loaded. */
export function useDelivered(
  address: string,
  read: typeof fromEdge = fromEdge,
): { shown: Delivered | undefined; fault: string | undefined } {
  const [shown, setShown] = useState<Delivered | undefined>(undefined);
  const [fault, setFault] = useState<string | undefined>(undefined);
  useEffect(() => {
    const controller = new AbortController();
    const show = async (): Promise<void> => {
      try {
        setShown(await measured(async () => read(address, controller.signal)));
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

async function measured(read: () => Promise<Response>): Promise<Delivered> {
  const startedAt = performance.now();
  const blob = await (await read()).blob();
  const ms = performance.now() - startedAt;
  const { width, height } = await createImageBitmap(blob);
  return { url: URL.createObjectURL(blob), size: blob.size, type: blob.type, ms, width, height };
}
