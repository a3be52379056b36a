import { methodOf, pathOf, type Call } from "../core/client.ts";
import { clients } from "./clients.ts";
import { quote } from "./quote.ts";

/** A call as text for one tool. */
export interface Rendering {
  name: string;
  text: string;
}

const isJson = (body: unknown): body is object =>
  typeof body === "object" && body !== null && !(body instanceof FormData) && !(body instanceof Blob);

const secretNames = new Set(["private_key", "secret", "api_key", "destination_conf"]);

/** The body with its secrets replaced by names of environment variables. */
export function withoutSecrets(call: Call): Call {
  if (!isJson(call.body) || Array.isArray(call.body)) return call;
  const isSecret = (name: string): boolean =>
    secretNames.has(name) || (name === "text" && call.op.includes("/secrets"));
  const body = Object.entries(call.body).map(([name, value]) => [
    name,
    isSecret(name) && value !== "" ? `$${name.toUpperCase()}` : value,
  ]);
  return { ...call, body: Object.fromEntries(body) as object };
}

/** Renders the call for each tool that supports it. Secrets are environment variables. */
export function renderings(given: Call): Rendering[] {
  const call = withoutSecrets(given);
  const known = clients[call.op];
  return [
    { name: "curl", text: curl(call) },
    ...(known?.client === undefined
      ? []
      : [
          { name: "TypeScript", text: typescript(call) },
          { name: "Python", text: python(call) },
        ]),
    ...(known?.wrangler === undefined ? [] : [{ name: "wrangler", text: known.wrangler(call) }]),
    ...(known?.terraform === undefined
      ? []
      : [{ name: "Terraform", text: terraform(call, known.terraform) }]),
  ];
}

function curl(call: Call): string {
  const { body } = call;
  const method = methodOf(call);
  const lines = [
    `curl ${method === "GET" ? "" : `-X ${method} `}"$CLOUDFLARE_BASE_URL${pathOf(call).replaceAll('"', "%22").replaceAll("$", "%24")}"`,
    '-H "Authorization: Bearer $CLOUDFLARE_API_TOKEN"',
    ...Object.entries(call.headers ?? {}).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
  ];
  if (isJson(body)) lines.push("--json " + quote(JSON.stringify(body, null, 2)));
  else if (typeof body === "string")
    lines.push(`--data-binary ${quote(body.length > 2000 ? "@FILE" : body)}`);
  else if (body instanceof FormData)
    for (const [name, value] of body)
      lines.push(`-F ${quote(`${name}=${typeof value === "string" ? value : `@${value.name}`}`)}`);
  else if (body instanceof Blob) lines.push("--data-binary @FILE");
  return lines.join(" \\\n  ");
}

const fields = (body: unknown): [string, unknown][] =>
  isJson(body)
    ? Array.isArray(body)
      ? [["body", body]]
      : Object.entries(body).filter(([, value]) => value !== undefined)
    : [];

function typescript(call: Call): string {
  const { client, argument } = clients[call.op]!;
  const { params = {}, query = {}, body } = call;
  const named = Object.entries(params).filter(([name]) => name !== argument);
  const given = Object.fromEntries([
    ...named,
    ...Object.entries(query).filter(([, value]) => value !== undefined),
    ...fields(body),
  ]);
  const first = argument === undefined ? [] : [JSON.stringify(params[argument])];
  const rest = Object.keys(given).length === 0 ? [] : [literal(given, 0)];
  return `import Cloudflare from "cloudflare";

const client = new Cloudflare(); // reads CLOUDFLARE_API_TOKEN and CLOUDFLARE_BASE_URL
const answer = await client.${client}(${[...first, ...rest].join(", ")});`;
}

/** A value as an object literal of JavaScript. */
function literal(value: unknown, depth: number): string {
  const inner = "  ".repeat(depth + 1);
  if (Array.isArray(value))
    return value.length === 0 ? "[]" : `[${value.map((each) => literal(each, depth)).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const lines = Object.entries(value).map(
    ([name, each]) =>
      `${inner}${/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name)}: ${literal(each, depth + 1)},\n`,
  );
  return lines.length === 0 ? "{}" : `{\n${lines.join("")}${"  ".repeat(depth)}}`;
}

function python(call: Call): string {
  const { client } = clients[call.op]!;
  const { params = {}, query = {}, body } = call;
  const given = [...Object.entries(params), ...Object.entries(query), ...fields(body)].filter(
    ([, value]) => value !== undefined,
  );
  const path = client!.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return `from cloudflare import Cloudflare

client = Cloudflare()  # reads CLOUDFLARE_API_TOKEN and CLOUDFLARE_BASE_URL
answer = client.${path}(
${given.map(([name, value]) => `    ${name}=${pythonValue(value)},\n`).join("")})`;
}

function pythonValue(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}: ${pythonValue(each)}`)
      .join(", ")}}`;
  return JSON.stringify(value);
}

function terraform({ params = {}, body }: Call, resource: string): string {
  const given = [...Object.entries(params), ...fields(body)];
  const width = Math.max(...given.map(([name]) => name.length));
  return `resource "${resource}" "example" {
${given.map(([name, value]) => `  ${name.padEnd(width)} = ${hcl(value, 1)}\n`).join("")}}`;
}

function hcl(value: unknown, depth: number): string {
  const inner = "  ".repeat(depth + 1);
  if (Array.isArray(value)) return `[${value.map((each) => hcl(each, depth)).join(", ")}]`;
  if (typeof value === "string") return JSON.stringify(value).replace(/[$%](?=\{)/g, "$&$&");
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{\n${Object.entries(value)
    .map(([name, each]) => `${inner}${name} = ${hcl(each, depth + 1)}\n`)
    .join("")}${"  ".repeat(depth)}}`;
}
