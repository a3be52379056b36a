import type { Dispatcher } from "undici";
import type { ResponseReceiver, ClientRequest, OriginClient } from "./exchange.ts";

/** A client over undici: for relays, which speak HTTP/2, and for main. */
export const clientOf = (dispatcher: Dispatcher): OriginClient => ({
  send(request, receiver) {
    dispatcher.dispatch(optionsOf(request), handlerOf(receiver));
  },
});

const optionsOf = ({ method, path, headers, body }: ClientRequest): Dispatcher.DispatchOptions => ({
  method,
  path,
  headers: headers as string[],
  body,
});

const handlerOf = (receiver: ResponseReceiver): Dispatcher.DispatchHandler => ({
  onRequestStart: (controller) =>
    receiver.began({
      abort: (error) => controller.abort(error),
      pause: () => controller.pause(),
      resume: () => controller.resume(),
    }),
  onResponseStart(controller, status, headers, text = "") {
    if (status >= 200) receiver.head(status, text, rawHeaders(controller, headers));
  },
  onResponseData: (_controller, chunk) => receiver.data(chunk),
  onResponseEnd: (_controller, trailers) => receiver.end("", listOf(trailers)),
  onResponseError: (_controller, error) => receiver.failed(error),
});

type Received = Record<string, string | string[] | undefined>;

/** The response's headers, names and values in turn. undici provides no raw headers for HTTP/2. */
const rawHeaders = ({ rawHeaders: raw }: Dispatcher.DispatchController, headers: Received): string[] =>
  Array.isArray(raw) ? (raw as Buffer[]).map((each) => each.toString("latin1")) : listOf(headers);

const listOf = (headers: Received): string[] =>
  Object.entries(headers).flatMap(([name, value = []]) => [value].flat().flatMap((each) => [name, each]));
