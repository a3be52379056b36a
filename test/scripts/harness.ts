import { createHash } from "node:crypto";
import { requestEdge, type EdgeResponse } from "../helpers/edge-request.ts";
import type { ApiResponse, TestServer } from "../helpers/server.ts";
import { ownerToken } from "../helpers/server.ts";

/** A form as `curl -F metadata=… -F main.mjs=@main.mjs` sends it. */
export interface UploadPart {
  name: string;
  content: string | Uint8Array;
  type?: string;
  filename?: string | undefined;
}

export async function upload(
  server: TestServer,
  path: string,
  parts: readonly UploadPart[],
  method = "PUT",
): Promise<ApiResponse> {
  const form = new FormData();
  for (const { name, content, type, filename } of parts) {
    const blob = new Blob([content as Uint8Array<ArrayBuffer> | string], type === undefined ? {} : { type });
    if (filename === undefined)
      form.append(name, typeof content === "string" && type === undefined ? content : blob);
    else form.append(name, blob, filename);
  }
  const response = await fetch(`${server.ready.api}${path}`, {
    method,
    headers: { authorization: `Bearer ${ownerToken}` },
    body: form,
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as ApiResponse["body"],
  };
}

export const esm = "application/javascript+module";

/** Deploys a script of one module to an account; throws if the API refuses it. */
export async function deploy(
  server: TestServer,
  name: string,
  code: string,
  metadata: object = {},
): Promise<void> {
  const path = `/accounts/${server.ready.account_id}/workers/scripts/${name}`;
  const answer = await upload(server, path, [
    {
      name: "metadata",
      content: JSON.stringify({ main_module: "main.mjs", compatibility_date: "2026-01-01", ...metadata }),
    },
    { name: "main.mjs", filename: "main.mjs", content: code, type: esm },
  ]);
  if (!answer.body.success) throw new Error(JSON.stringify(answer.body.errors));
}

/** The host name of a script without a zone. */
export async function hostOf(server: TestServer, script: string): Promise<string> {
  const { body } = await server.call("GET", `/accounts/${server.ready.account_id}/workers/subdomain`);
  const { subdomain } = body.result as { subdomain: string };
  return `${script}.${subdomain}.workers.localhost`;
}

/** Requests a script at its own host name. */
export async function ask(
  server: TestServer,
  script: string,
  path = "/",
  headers: Record<string, string> = {},
): Promise<EdgeResponse> {
  return requestEdge(server.ready.edge, await hostOf(server, script), path, headers);
}

/** Performs the first two of the three steps for static assets. Returns the completion token. */
export async function sendAssets(
  server: TestServer,
  path: string,
  files: Readonly<Record<string, string>>,
): Promise<string> {
  const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32);
  const manifest = Object.fromEntries(
    Object.entries(files).map(([name, text]) => [name, { hash: hashOf(text), size: text.length }]),
  );
  const session = await server.call("POST", `${path}/assets-upload-session`, { manifest });
  const { jwt, buckets } = session.body.result as { jwt: string; buckets: string[][] };
  if (buckets.length === 0) return jwt;
  const form = new FormData();
  for (const text of Object.values(files)) form.append(hashOf(text), Buffer.from(text).toString("base64"));
  const account = path.split("/", 3).join("/");
  const sent = await fetch(`${server.ready.api}${account}/edge/assets/upload?base64=true`, {
    method: "POST",
    headers: { authorization: `Bearer ${jwt}` },
    body: form,
  });
  return ((await sent.json()) as { result: { jwt: string } }).result.jwt;
}
