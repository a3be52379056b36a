import { z } from "zod";
import { findPermissionGroup } from "../../src/control/access/permissions.ts";
import type { Operation } from "../../src/control/api/operation.ts";
import { previewForm, uploadForm } from "../runtime/platform.ts";
import type { World } from "./world.ts";

/**
 * A request that refers to a second resource, in addition to the one in its path. `other` is the world of
 * that resource.
 */
export interface Reference {
  operation: string;
  /** The fields of the body or query with the reference, as in `namingFields`. */
  fields: readonly string[];
  /** The ids in the path, if they are not those of the account. */
  path?: (own: World) => Record<string, string>;
  send: (other: World, own: World) => { body?: unknown; form?: FormData; query?: Record<string, string> };
  /** `filter`: resources of another account are not found, without an error. */
  answer?: "filter";
}

const code = "export default { fetch: () => new Response('hi') };";
const bindings: Record<string, (of: World) => object> = {
  kv: ({ ids }) => ({ type: "kv_namespace", namespace_id: ids["namespace_id"] }),
  service: ({ ids }) => ({ type: "service", service: ids["script_name"] }),
  dispatch: ({ ids }) => ({ type: "dispatch_namespace", namespace: ids["namespace_name"] }),
  queue: ({ ids }) => ({ type: "queue", queue_name: ids["queue_name"] }),
  workflow: ({ ids }) => ({
    type: "workflow",
    workflow_name: ids["workflow_name"],
    script_name: ids["script_name"],
  }),
};
const outbound = (other: World, own: World): object => ({
  type: "dispatch_namespace",
  namespace: own.ids["namespace_name"],
  outbound: { worker: { service: other.ids["script_name"] } },
});
const kinds = [
  ...Object.values(bindings).map(
    (each) =>
      (other: World): object =>
        each(other),
  ),
  outbound,
  ({ ids }: World): object => ({ type: "inherit", old_name: "X", version_id: ids["version_id"] }),
];
const uploads = ["script_upload", "script_version_upload", "dispatch_script_upload"];
const uploadReferences = uploads.flatMap((operation) =>
  kinds.slice(0, -1).map((binding): Reference => ({
    operation,
    fields: ["body.metadata.bindings"],
    path: () => ({ script_name: "made" }),
    send: (other, own) => ({
      form: uploadForm({ code, bindings: [{ name: "X", ...binding(other, own) }] }),
    }),
  })),
);

const previewReferences = kinds.slice(0, -1).map((binding): Reference => ({
  operation: "script_preview",
  fields: ["body.metadata.bindings"],
  send: (other, own) => ({
    form: previewForm(code, { bindings: [{ name: "X", ...binding(other, own) }] }),
  }),
}));

const record = { type: "A", name: "second", content: "192.0.2.2", ttl: 60 };
const consumer = (fields: object): object => ({ type: "worker", ...fields });
const tokenPolicy = (resources: object, ...names: string[]): object => ({
  name: "t",
  policies: [
    {
      effect: "allow",
      resources,
      permission_groups: names.map((name) => ({ id: findPermissionGroup(undefined, name)!.id })),
    },
  ],
});
const resource = "com.cloudflare.api.account";
const tokenBodies: ((of: World) => object)[] = [
  ({ ids }) => tokenPolicy({ [`${resource}.${ids["account_id"]}`]: "*" }, "Queues Read"),
  ({ ids }) => tokenPolicy({ [`${resource}.zone.${ids["zone_id"]}`]: "*" }, "DNS Read"),
  ({ ids }) =>
    tokenPolicy({ [`${resource}.${ids["account_id"]}`]: { [`${resource}.zone.*`]: "*" } }, "DNS Read"),
];

const always = { since: "2000-01-01T00:00:00Z", before: "2100-01-01T00:00:00Z" };
const auditFilters: readonly [field: string, valueOf: (of: World) => string][] = [
  ["id", ({ ids }) => ids["audit_log_id"]!],
  ["audit_log_id", ({ ids }) => ids["audit_log_id"]!],
  ["resource_id", ({ ids }) => ids["zone_id"]!],
  ["zone_id", ({ ids }) => ids["zone_id"]!],
  ["zone_name", ({ zoneName }) => zoneName],
];

/** Every field that refers to a resource of an account or zone, with a request that uses it. */
export const references: readonly Reference[] = [
  {
    operation: "audit_log_list",
    fields: ["query.id"],
    send: ({ ids }) => ({ query: { id: ids["audit_log_id"]! } }),
    answer: "filter",
  },
  ...auditFilters.map(([field, valueOf]): Reference => ({
    operation: "audit_log_list_v2",
    fields: [`query.${field}`],
    send: (of) => ({ query: { ...always, [field]: valueOf(of) } }),
    answer: "filter",
  })),
  ...uploadReferences,
  ...previewReferences,
  ...["account_token_create", "account_token_update"].flatMap((operation) =>
    tokenBodies.map((body): Reference => ({
      operation,
      fields: ["body.policies.resources"],
      send: (other) => ({ body: body(other) }),
    })),
  ),
  {
    operation: "zone_create",
    fields: ["body.account.id", "body.account.name"],
    send: ({ ids }) => ({
      body: { account: { id: ids["account_id"] }, name: `made-${ids["zone_id"]!.slice(0, 8)}.example` },
    }),
  },
  {
    operation: "zone_list",
    fields: ["query.account.id", "query.account.name"],
    answer: "filter",
    send: ({ ids }) => ({ query: { "account.id": ids["account_id"]! } }),
  },
  ...(["patches", "puts", "deletes"] as const).map((part): Reference => ({
    operation: "dns_record_batch",
    fields: [`body.${part}.id`],
    send: ({ ids }) => ({
      body: {
        [part]: [part === "deletes" ? { id: ids["dns_record_id"] } : { ...record, id: ids["dns_record_id"] }],
      },
    }),
  })),
  {
    operation: "custom_certificate_prioritize",
    fields: ["body.certificates.id"],
    send: ({ ids }) => ({ body: { certificates: [{ id: ids["custom_certificate_id"], priority: 5 }] } }),
  },
  {
    operation: "outgoing_transfer_update",
    fields: ["body.peers"],
    send: ({ ids }) => ({ body: { name: "t", peers: [ids["peer_id"]] } }),
  },
  ...["zone_transfer_peer_create", "zone_transfer_peer_update"].map((operation): Reference => ({
    operation,
    fields: ["body.tsig_id"],
    send: ({ ids }) => ({ body: { name: "p", ip: "192.0.2.8", tsig_id: ids["tsig_id"] } }),
  })),
  {
    operation: "snippet_rules_put",
    fields: ["body.rules.snippet_name"],
    send: ({ ids }) => ({
      body: { rules: [{ snippet_name: ids["snippet_name"], expression: "ssl", enabled: true }] },
    }),
  },
  {
    operation: "ruleset_entrypoint_put_snippets",
    fields: ["body.rules.snippet_name"],
    send: ({ ids }) => ({
      body: {
        rules: [
          {
            action: "snippet",
            expression: "ssl",
            snippet_name: ids["snippet_name"],
            action_parameters: { snippet_name: ids["snippet_name"] },
          },
        ],
      },
    }),
  },
  {
    operation: "script_deployment_create",
    fields: ["body.versions.version_id"],
    send: ({ ids }) => ({
      body: { strategy: "percentage", versions: [{ version_id: ids["version_id"], percentage: 100 }] },
    }),
  },
  {
    operation: "script_content_get",
    fields: ["query.version"],
    send: ({ ids }) => ({ query: { version: ids["version_id"]! } }),
  },
  ...["route_create", "route_update"].map((operation): Reference => ({
    operation,
    fields: ["body.script"],
    send: ({ ids }, own) => ({
      body: { pattern: `r-${operation}.${own.zoneName}/*`, script: ids["script_name"] },
    }),
  })),
  ...["route_create", "route_update"].map((operation): Reference => ({
    operation,
    fields: ["body.pattern"],
    send: ({ zoneName }) => ({ body: { pattern: `p-${operation}.${zoneName}/*`, script: null } }),
  })),
  {
    operation: "script_routes_put",
    fields: ["body.zone_id"],
    send: ({ ids, zoneName }) => ({ body: [{ pattern: `x.${zoneName}/*`, zone_id: ids["zone_id"] }] }),
  },
  {
    operation: "script_routes_put",
    fields: ["body.zone_name"],
    send: ({ zoneName }) => ({ body: [{ pattern: `x.${zoneName}/*`, zone_name: zoneName }] }),
  },
  {
    operation: "script_routes_put",
    fields: ["body", "body.pattern"],
    send: ({ zoneName }) => ({ body: [`x.${zoneName}/*`] }),
  },
  ...[
    (of: World): object => ({ hostname: `d.${of.zoneName}`, zone_id: of.ids["zone_id"] }),
    (of: World): object => ({ hostname: `d.${of.zoneName}`, zone_name: of.zoneName }),
    (of: World): object => ({ hostname: `d.${of.zoneName}` }),
    // Resources of the other account's script.
    (of: World): object => ({ hostname: `app.${of.zoneName}` }),
  ].flatMap((origin): Reference[] => [
    {
      operation: "domain_put",
      fields: ["body.hostname", "body.zone_id", "body.zone_name"],
      send: (other, own) => ({ body: { ...origin(other), service: own.ids["script_name"] } }),
    },
    {
      operation: "script_domains_changeset",
      fields: ["body.hostname", "body.zone_id", "body.zone_name"],
      send: (other) => ({ body: [origin(other)] }),
    },
    {
      operation: "script_domains_put",
      fields: ["body.origins.hostname", "body.origins.zone_id", "body.origins.zone_name"],
      send: (other) => ({ body: { override_existing_origin: true, origins: [origin(other)] } }),
    },
  ]),
  {
    operation: "domain_put",
    fields: ["body.service"],
    send: ({ ids }, own) => ({ body: { hostname: `s.${own.zoneName}`, service: ids["script_name"] } }),
  },
  ...(["zone_id", "zone_name", "service", "hostname"] as const).map((field): Reference => ({
    operation: "domain_list",
    fields: [`query.${field}`],
    answer: "filter",
    send: ({ ids, zoneName }) => ({
      query: {
        [field]: {
          zone_id: ids["zone_id"]!,
          zone_name: zoneName,
          service: ids["script_name"]!,
          hostname: `app.${zoneName}`,
        }[field],
      },
    }),
  })),
  {
    operation: "script_search",
    fields: ["query.id"],
    answer: "filter",
    send: ({ ids }) => ({ query: { id: ids["worker_name"]! } }),
  },
  ...["worker_version_create"].flatMap((operation) =>
    kinds.slice(0, -1).map((binding): Reference => ({
      operation,
      fields: ["body.bindings"],
      send: (other, own) => ({
        body: {
          main_module: "m.js",
          compatibility_date: "2026-01-01",
          modules: [
            {
              name: "m.js",
              content_type: "application/javascript+module",
              content_base64: Buffer.from(code).toString("base64"),
            },
          ],
          bindings: [{ name: "X", ...binding(other, own) }],
        },
      }),
    })),
  ),
  {
    operation: "queue_consumer_update",
    fields: ["body.script_name"],
    send: ({ ids }) => ({ body: consumer({ script_name: ids["script_name"] }) }),
  },
  {
    operation: "queue_consumer_update",
    fields: ["body.dead_letter_queue"],
    send: (other, own) => ({
      body: consumer({
        script_name: own.ids["script_name"],
        // A queue cannot be its own dead letter queue, so the account has a second one.
        dead_letter_queue: other === own ? "dead" : other.ids["queue_name"],
      }),
    }),
  },
  {
    operation: "workflow_put",
    fields: ["body.script_name"],
    send: ({ ids }) => ({ body: { script_name: ids["script_name"], class_name: "Main" } }),
  },
];

const naming =
  /^(id|.+_id|script|service|.*script_name|queue_name|namespace|workflow_name|hostname|zone_name|pattern|peers|dead_letter_queue|snippet_name|bindings|resources|account|jwt)$/;

/** The fields of an operation's body and query with references, such as "body.versions.version_id". */
export function namingFields({ body, query }: Operation): string[] {
  const fields = new Set<string>();
  for (const [place, schema] of Object.entries({ body, query })) {
    if (schema === undefined) continue;
    const json = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;
    walk(json, place, json.$defs ?? {}, fields, 0);
  }
  return [...fields];
}

interface JsonSchema {
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  enum?: unknown[];
  const?: unknown;
}

function walk(
  schema: JsonSchema,
  path: string,
  defs: Record<string, JsonSchema>,
  fields: Set<string>,
  depth: number,
): void {
  if (depth > 12) return; // JSON values are recursive
  const { $ref, properties, items } = schema;
  const go = (next: JsonSchema, at: string): void => walk(next, at, defs, fields, depth + 1);
  if ($ref !== undefined && defs[$ref.split("/").at(-1)!] !== undefined)
    go(defs[$ref.split("/").at(-1)!]!, path);
  for (const each of [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])])
    go(each, path);
  if (items !== undefined) go(items, path);
  for (const [name, each] of Object.entries(properties ?? {})) {
    const isConstant = each.enum !== undefined || each.const !== undefined;
    if (naming.test(name) && !isConstant && each.properties === undefined) fields.add(`${path}.${name}`);
    go(each, `${path}.${name}`);
  }
}
