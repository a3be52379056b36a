import { openChannel } from "./channel.ts";
import { forRun, metadataOf } from "./run.ts";

interface Handler {
  fetch(request: Request): Promise<Response>;
}

const { freeze } = Object;
const { apply } = Reflect;
const headersOf = Object.getOwnPropertyDescriptor(Request.prototype, "headers")!.get!;
const { get } = Headers.prototype;

/** The entrypoint around a snippet: the handler receives the request, without env and ctx. */
export const entryOf = (handler: Handler): { fetch(request: Request): Response | Promise<Response> } =>
  freeze({
    fetch(request: Request) {
      const { selvedgeRun: run } = metadataOf(request);
      // Only the gateway sends upgrades here: visitors' upgrades never reach snippets.
      if (apply(get, apply(headersOf, request, []), ["upgrade"]) !== null)
        return openChannel(run, async (incoming) => handler.fetch(incoming));
      return forRun(run, () => handler.fetch(request));
    },
  });
