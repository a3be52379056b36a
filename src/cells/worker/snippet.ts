import { WorkerEntrypoint } from "cloudflare:workers";
import { openChannel } from "./channel.ts";
import { forRun, saidWith } from "./run.ts";

interface Handler {
  fetch(request: Request): Promise<Response>;
}

/** Runs a snippet: its handler gets the request, and nothing besides. */
export abstract class SnippetEntry extends WorkerEntrypoint {
  abstract get handler(): Handler;

  override fetch(request: Request): Response | Promise<Response> {
    const { selvedgeRun: run } = saidWith(request);
    // No visitor's request asks for an upgrade here.
    if (request.headers.get("upgrade") !== null)
      return openChannel(run, async (visit) => this.handler.fetch(visit));
    return forRun(run, () => this.handler.fetch(request));
  }
}
