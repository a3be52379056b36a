import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createZone } from "../snippets/example-platform.ts";
import { startHosting, startOutside, type Hosting, type Outside } from "./platform.ts";

/** Answers with the status of the path's last segment. `?says` sets the reason phrase. */
const answer = `
  const { pathname, searchParams } = new URL(request.url);
  const statusText = searchParams.get("says") ?? undefined;
  const status = Number(pathname.split("/").at(-1));
  return new Response(status === 204 ? null : "x", { status, statusText });`;
const worker = `export default { fetch(request) { ${answer} } };`;

const nodeServer = `
  import { createServer } from "node:http";
  import { httpServerHandler } from "cloudflare:node";
  createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://host");
    response.statusCode = Number(pathname.split("/").at(-1));
    if (searchParams.has("says")) response.statusMessage = searchParams.get("says");
    response.end();
  }).listen(80);
  export default httpServerHandler({ port: 80 });`;

const caller = `export default { async fetch(request, { SERVICE, NODE, CUSTOMERS }) {
  const kind = new URL(request.url).pathname.split("/")[1];
  const to = { service: SERVICE, "service-node": NODE, customer: CUSTOMERS.get("customer") }[kind];
  return to.fetch(request);
} };`;

let hosting: Hosting;
let outside: Outside;
beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  outside = await startOutside((_request, response) => response.end());
  const node = { code: nodeServer, metadata: { compatibility_flags: ["nodejs_compat"] } };
  await hosting.deploy("worker", worker);
  await hosting.deploy("node", node);
  await hosting.createNamespace("customers");
  await hosting.deployCustomer("customers", "customer", worker);
  await hosting.deploy("caller", {
    code: caller,
    bindings: [
      { type: "service", name: "SERVICE", service: "worker" },
      { type: "service", name: "NODE", service: "node" },
      { type: "dispatch_namespace", name: "CUSTOMERS", namespace: "customers" },
    ],
  });
  await createZone(hosting.ready.api, "phrases.example", outside.port, [{ name: "made", code: worker }]);
});
afterAll(async () => {
  await outside.close();
  await hosting.close(0);
});

const hosts: Record<string, () => string> = {
  script: () => hosting.hostOf("worker"),
  "script of node:http": () => hosting.hostOf("node"),
  snippet: () => "phrases.example",
  service: () => hosting.hostOf("caller"),
  "service-node": () => hosting.hostOf("caller"),
  customer: () => hosting.hostOf("caller"),
};

describe.each(Object.keys(hosts))("the reason phrase of an answer: %s", (kind) => {
  test.each([
    [200, "OK"],
    [201, "Created"],
    [204, "No Content"],
    [404, "Not Found"],
    [422, "Unprocessable Entity"],
    [503, "Service Unavailable"],
  ])("of %i is the standard one, or the script's own", async (status, phrase) => {
    const path = `/${kind.replaceAll(" ", "-")}/${status}`;
    expect(await hosting.askHost(hosts[kind]!(), path)).toMatchObject({ status, statusText: phrase });
    const own = await hosting.askHost(hosts[kind]!(), `${path}?says=In%20own%20words`);
    expect(own).toMatchObject({ status, statusText: "In own words" });
  });
});
