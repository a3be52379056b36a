import type { Selvedge } from "../../src/testkit/start-selvedge.ts";

/** Calls the management API. Throws an Error with the answer's errors. */
export async function call<T = unknown>(
  edge: Selvedge,
  method: string,
  path: string,
  body?: object | FormData,
): Promise<T> {
  const isForm = body instanceof FormData;
  const answer = await fetch(`${edge.urls.api}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${edge.token}`,
      ...(isForm ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
  });
  const { success, errors, result } = (await answer.json()) as {
    success: boolean;
    errors: unknown;
    result: T;
  };
  if (!success) throw new Error(`${method} ${path}: ${JSON.stringify(errors)}`);
  return result;
}

/** Creates the zone shop.example with one record. Returns its id. */
export async function zoneWith(edge: Selvedge, record: object): Promise<string> {
  const account = { id: edge.accountId };
  const { id } = await call<{ id: string }>(edge, "POST", "/zones", {
    account,
    name: "shop.example",
    type: "full",
  });
  await call(edge, "POST", `/zones/${id}/dns_records`, { ttl: 1, ...record });
  return id;
}

/** Uploads a script of one module, for a host if one is given. */
export async function deploy(
  edge: Selvedge,
  name: string,
  source: string,
  domain?: { hostname: string; zone_id: string },
  more: object = {},
): Promise<void> {
  const form = new FormData();
  form.set("metadata", JSON.stringify({ main_module: "main.js", compatibility_date: "2026-01-01", ...more }));
  form.set("main.js", new File([source], "main.js", { type: "application/javascript+module" }));
  const account = `/accounts/${edge.accountId}`;
  await call(edge, "PUT", `${account}/workers/scripts/${name}`, form);
  if (domain !== undefined)
    await call(edge, "PUT", `${account}/workers/domains`, { ...domain, service: name });
}

/**
 * Uploads a script that writes notes to the key-value namespace `LOG`, with a class of objects. Returns the namespace's
 * id.
 */
export async function deployNoting(
  edge: Selvedge,
  script: string,
  source: string,
  object: { name: string; class_name: string },
): Promise<string> {
  const account = `/accounts/${edge.accountId}`;
  const namespaces = `${account}/storage/kv/namespaces`;
  const { id } = await call<{ id: string }>(edge, "POST", namespaces, { title: "log" });
  const form = new FormData();
  const metadata = {
    main_module: "main.js",
    compatibility_date: "2026-01-01",
    bindings: [
      { type: "kv_namespace", name: "LOG", namespace_id: id },
      { type: "durable_object_namespace", ...object },
    ],
    migrations: { new_tag: "v1", new_sqlite_classes: [object.class_name] },
  };
  form.set("metadata", JSON.stringify(metadata));
  form.set("main.js", new File([source], "main.js", { type: "application/javascript+module" }));
  await call(edge, "PUT", `${account}/workers/scripts/${script}`, form);
  return id;
}
