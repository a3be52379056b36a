import Cloudflare from "cloudflare";
import type { Operation } from "../../src/control/api/operation.ts";
import { canonicalPath } from "../../src/control/api/server/paths.ts";
import { ownerToken, type TestServer } from "./server.ts";

/** The official client, and the ids of the operations that it has called. */
export function recordingClient(
  server: TestServer,
  operations: readonly Operation[],
  { apiToken = ownerToken, called = new Set<string>() } = {},
): { client: Cloudflare; called: Set<string> } {
  const patterns = operations.map(({ id, method, path }) => ({
    id,
    method,
    fixed: path.split("/").filter((part) => !part.startsWith("{")).length,
    pattern: new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`),
  }));
  const recording: typeof fetch = (input, init) => {
    const path = canonicalPath(new URL(input instanceof Request ? input.url : input).pathname);
    const matching = patterns.filter(
      ({ method, pattern }) => method === (init?.method ?? "GET").toUpperCase() && pattern.test(path),
    );
    const [best] = matching.toSorted((a, b) => b.fixed - a.fixed);
    if (best !== undefined) called.add(best.id);
    return fetch(input, init);
  };
  const client = new Cloudflare({
    baseURL: server.ready.api,
    apiToken,
    maxRetries: 0,
    fetch: recording,
  });
  return { client, called };
}
