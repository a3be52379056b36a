import type { Ready } from "../../src/ready.ts";
import { api } from "./child.ts";

/** Creates a zone whose host `www` is proxied to the origin at the given port. Resolves with its id. */
export async function proxiedZone(
  ready: Ready,
  name: string,
  originPort: number,
  expression = "true",
): Promise<string> {
  const { id } = await api<{ id: string }>(ready, "POST", "/zones", { name });
  const record = { type: "A", name: "www", content: "127.0.0.1", proxied: true, ttl: 1 };
  await api(ready, "POST", `/zones/${id}/dns_records`, record);
  await api(ready, "PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [{ action: "route", expression, action_parameters: { origin: { port: originPort } } }],
  });
  return id;
}
