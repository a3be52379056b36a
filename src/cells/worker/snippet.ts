import { WorkerEntrypoint } from "cloudflare:workers";
import { forRun } from "./run.ts";

interface Handler {
  fetch(request: Request): Promise<Response>;
}

/** Runs a snippet: its handler gets the request, and nothing besides. */
export abstract class SnippetEntry extends WorkerEntrypoint<unknown, { run: string }> {
  abstract get handler(): Handler;

  override fetch(request: Request): Promise<Response> {
    return forRun(this.ctx.props.run, () => this.handler.fetch(request));
  }
}
