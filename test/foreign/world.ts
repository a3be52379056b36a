import { roles } from "../../src/control/accounts/roles.ts";
import { openLocalAuthority } from "../../src/edge/tls/certificates/local-authority.ts";
import { permissionGroups } from "../../src/control/access/permissions.ts";
import type { TestServer } from "../helpers/server.ts";
import { dataSets } from "../../src/products/logpush/data-sets/data-sets.ts";
import { jobInput } from "../../src/products/logpush/job-input.ts";
import { fourColors, jpegOf } from "../images/fixtures.ts";
import { uploadForm, type ScriptUpload } from "../runtime/platform.ts";

/** An account with one resource of each kind, keyed by path parameter. */
export interface World {
  label: string;
  zoneName: string;
  /** A token with all permissions on only this account and its zones. */
  token: string;
  ids: Record<string, string>;
}

const workflowCode = `import { WorkflowEntrypoint } from "cloudflare:workers";
export class Main extends WorkflowEntrypoint { async run() { return 1; } }
export default { fetch: () => new Response("hi"), queue() {} };`;

/** Creates an account as the owner, with one resource of each kind. Names and ids begin with the label. */
export async function createWorld(server: TestServer, label: string, folder: string): Promise<World> {
  // oxlint-disable-next-line typescript/no-explicit-any
  const made = async (method: string, path: string, body?: unknown): Promise<any> => {
    const answer = await server.call(method, path, body);
    if (!answer.body.success) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body.errors)}`);
    return answer.body.result;
  };
  const upload = async (path: string, form: FormData): Promise<{ id: string }> => {
    const headers = { authorization: `Bearer ${server.client.apiToken}` };
    const response = await fetch(`${server.ready.api}${path}`, {
      method: path.includes("images") ? "POST" : "PUT",
      headers,
      body: form,
    });
    const body = (await response.json()) as { success: boolean; result: { id: string } };
    if (!body.success) throw new Error(`${path}: ${JSON.stringify(body)}`);
    return body.result;
  };
  const deploy = async (path: string, given: ScriptUpload): Promise<{ id: string }> =>
    upload(path, uploadForm(given));

  const account = ((await made("POST", "/accounts", { name: label })) as { id: string }).id;
  const zoneName = `${label}.example`;
  const zone = (await made("POST", "/zones", { account: { id: account }, name: zoneName })).id as string;
  await made("PUT", `/zones/${zone}/activation_check`);
  const inAccount = `/accounts/${account}`;
  const inZone = `/zones/${zone}`;
  const record = { type: "A", name: "www", content: "192.0.2.1", proxied: true };
  const { certificate, privateKey: private_key } = openLocalAuthority(folder).issue([`www.${zoneName}`]);

  const script = `${label}-script`;
  await deploy(`${inAccount}/workers/scripts/${script}`, { code: workflowCode });
  const namespace = `${label}-namespace`;
  await made("POST", `${inAccount}/edge/dispatch/namespaces`, { name: namespace });
  const customer = `${inAccount}/edge/dispatch/namespaces/${namespace}/scripts/${label}-customer`;
  await deploy(customer, { code: workflowCode });
  const [version] = (await made("GET", `${inAccount}/workers/scripts/${script}/versions`)).items;
  const [deployment] = (await made("GET", `${inAccount}/workers/scripts/${script}/deployments`)).deployments;
  const worker = await made("GET", `${inAccount}/workers/workers/${script}`);
  const queue = (await made("POST", `${inAccount}/queues`, { queue_name: `${label}-queue` })).queue_id;
  const consumer = { type: "worker", script_name: script };
  const workflow = `${label}-workflow`;
  const code = { script_name: script, class_name: "Main" };
  const workflowVersion = (await made("PUT", `${inAccount}/workflows/${workflow}`, code)).version_id;
  await made("POST", `${inAccount}/workflows/${workflow}/instances`, { instance_id: `${label}-instance` });
  const rule = { action: "route", expression: "ssl", action_parameters: { origin: { port: 8443 } } };
  const phase = `${inZone}/rulesets/phases/http_request_origin/entrypoint`;
  const ruleset = await made("PUT", phase, { rules: [rule] });
  const snippet = new FormData();
  snippet.set("metadata", JSON.stringify({ main_module: "m.js" }));
  const source = "export default { fetch: (request) => fetch(request) };";
  snippet.set("files", new File([source], "m.js", { type: "application/javascript+module" }));
  await upload(`${inZone}/snippets/${label}_snippet`, snippet);
  const image = new FormData();
  image.set("id", `${label}-image`);
  image.set("file", new File([new Uint8Array(await jpegOf(fourColors(8, 8)))], "a.jpg"));
  await upload(`${inAccount}/images/v1`, image);
  const variant = { fit: "cover", width: 10, height: 10, metadata: "none" };
  await made("POST", `${inAccount}/images/v1/variants`, { id: `${label}v`, options: variant });
  await made("PUT", `${inAccount}/images/v1/keys/${label}-key`);
  const tsig = { name: `${label}-key`, algo: "hmac-sha256.", secret: "c2VjcmV0c2VjcmV0" };
  const tsigId = (await made("POST", `${inAccount}/secondary_dns/tsigs`, tsig)).id as string;
  const peer = { name: label, ip: "192.0.2.9", tsig_id: tsigId };
  const peerId = (await made("POST", `${inAccount}/secondary_dns/peers`, peer)).id as string;
  await made("POST", `${inZone}/secondary_dns/outgoing`, { name: zoneName, peers: [peerId] });
  const acl = { name: label, ip_range: "192.0.2.0/24" };
  const domain = { hostname: `app.${zoneName}`, service: script, zone_id: zone };
  const route = { pattern: `www.${zoneName}/*`, script };
  const kv = (await made("POST", `${inAccount}/storage/kv/namespaces`, { title: label })).id as string;
  await made("PUT", `${inAccount}/storage/kv/namespaces/${kv}/bulk`, [{ key: `${label}-k`, value: "v" }]);
  const policies = everything(account);
  const dns = roles.find(({ name }) => name === "DNS")!.id;
  const member = { email: `${label}@example.com`, roles: [dns] };
  const invited = await made("POST", `${inAccount}/members`, member);
  await fetch(invited.invitation.url as string, { method: "POST" });
  await made("POST", `${inAccount}/members`, { ...member, email: `invited-${label}@example.com` });
  const token = await made("POST", `${inAccount}/tokens`, { name: label, policies });
  const pack = {
    type: "advanced",
    hosts: [zoneName],
    validation_method: "http",
    validity_days: 90,
    certificate_authority: "lets_encrypt",
  };

  const output = { field_names: ["RayID"] };
  const destination_conf = "https://logs.example";
  const input = jobInput({ destination_conf, output_options: output }, "zone", dataSets);
  const job = await server.services.logpushJobs.create({ accountId: account, zoneId: zone }, input);

  return {
    label,
    zoneName,
    token: token.value as string,
    ids: {
      account_id: account,
      zone_id: zone,
      member_id: invited.id,
      role_id: dns,
      token_id: (await made("POST", `${inAccount}/tokens`, { name: "second", policies })).id,
      certificate_pack_id: (await made("POST", `${inZone}/ssl/certificate_packs/order`, pack)).id,
      dns_record_id: (await made("POST", `${inZone}/dns_records`, record)).id,
      custom_certificate_id: (
        await made("POST", `${inZone}/custom_certificates`, { certificate, private_key })
      ).id,
      ruleset_id: ruleset.id,
      rule_id: ruleset.rules[0].id,
      snippet_name: `${label}_snippet`,
      script_name: script,
      worker_name: worker.id,
      version_id: version.id,
      deployment_id: deployment.id,
      workflow_version_id: workflowVersion,
      tail_id: (await made("POST", `${inAccount}/workers/scripts/${script}/tails`)).id,
      domain_id: (await made("PUT", `${inAccount}/workers/domains`, domain)).id,
      route_id: (await made("POST", `${inZone}/workers/routes`, route)).id,
      namespace_name: namespace,
      customer_name: `${label}-customer`,
      namespace_id: kv,
      key_name: `${label}-k`,
      queue_id: queue,
      queue_name: `${label}-queue`,
      consumer_id: (await made("POST", `${inAccount}/queues/${queue}/consumers`, consumer)).consumer_id,
      workflow_name: workflow,
      instance_id: `${label}-instance`,
      image_id: `${label}-image`,
      variant_name: `${label}v`,
      signing_key_name: `${label}-key`,
      acl_id: (await made("POST", `${inAccount}/secondary_dns/acls`, acl)).id,
      tsig_id: tsigId,
      peer_id: peerId,
      job_id: String(job.id),
      audit_log_id: (await made("GET", `${inAccount}/audit_logs`))[0].id,
    },
  };
}

function everything(account: string): object[] {
  const name = `com.cloudflare.api.account.${account}`;
  return (["account", "zone"] as const).map((kind) => ({
    effect: "allow",
    resources: { [name]: kind === "account" ? "*" : { "com.cloudflare.api.account.zone.*": "*" } },
    permission_groups: permissionGroups.filter(({ scope }) => scope === kind).map(({ id }) => ({ id })),
  }));
}
