import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { once } from "node:events";
import { call, ensureRecord, ensureZone, visit } from "../api.js";

/*
 * Puts the edge in front of an origin on this machine: an origin rule sets its port, and a snippet adds a header to
 * the answers below /app/.
 */
const origin = createServer(({ headers }, response) => response.end(`origin of ${headers.host}\n`));
await once(origin.listen(0, "127.0.0.1"), "listening");

const zone = await ensureZone("garden.example");
await ensureRecord(zone, { type: "A", name: "www.garden.example", content: "127.0.0.1", proxied: true });
await call("PUT", `/zones/${zone.id}/rulesets/phases/http_request_origin/entrypoint`, {
  rules: [
    {
      action: "route",
      expression: "true",
      action_parameters: { origin: { port: origin.address().port } },
    },
  ],
});

const form = new FormData();
form.set("metadata", new Blob([JSON.stringify({ main_module: "snippet.js" })], { type: "application/json" }));
const code = await readFile(new URL("snippet.js", import.meta.url));
form.set("files", new File([code], "snippet.js", { type: "application/javascript+module" }));
await call("PUT", `/zones/${zone.id}/snippets/headers`, form);
await call("PUT", `/zones/${zone.id}/snippets/snippet_rules`, {
  rules: [
    { snippet_name: "headers", expression: 'starts_with(http.request.uri.path, "/app/")', enabled: true },
  ],
});

for (const path of ["/", "/app/"]) {
  const { status, headers, body } = await visit("www.garden.example", path);
  console.log(path, status, headers["x-frame-options"] ?? "no header", body.trim());
}
origin.close();
origin.closeAllConnections();
