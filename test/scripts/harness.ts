import { visit, type Visit } from "../helpers/visit.ts";
import type { Answer, TestServer } from "../helpers/server.ts";
import { ownerToken } from "../helpers/server.ts";

/** What curl sends for `-F metadata=… -F main.mjs=@main.mjs`: a form with named parts. */
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
): Promise<Answer> {
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
    body: (await response.json()) as Answer["body"],
  };
}

export const esm = "application/javascript+module";

/** Deploys a script of one module to an account; throws what the API refuses. */
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

/** The host that a script has without a zone. */
export async function hostOf(server: TestServer, script: string): Promise<string> {
  const { body } = await server.call("GET", `/accounts/${server.ready.account_id}/workers/subdomain`);
  const { subdomain } = body.result as { subdomain: string };
  return `${script}.${subdomain}.workers.localhost`;
}

/** Asks a script under its own host. */
export async function ask(
  server: TestServer,
  script: string,
  path = "/",
  headers: Record<string, string> = {},
): Promise<Visit> {
  return visit(server.ready.edge, await hostOf(server, script), path, headers);
}
