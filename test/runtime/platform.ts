import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { visit, type Visit } from "../helpers/visit.ts";

export interface ScriptUpload {
  /** The main module's source, or all modules by name, the first of them the main one. */
  code: string | Record<string, string>;
  bindings?: readonly Record<string, unknown>[];
  metadata?: Record<string, unknown>;
}

/** A running platform with the calls that hosts of scripts make. */
export interface Hosting extends TestServer {
  account: string;
  /** Uploads a script of the account, and waits for nothing: it takes the next request. */
  deploy(name: string, upload: ScriptUpload | string): Promise<void>;
  deployCustomer(namespace: string, name: string, upload: ScriptUpload | string): Promise<void>;
  /** A request to a script's own host name. */
  ask(script: string, path?: string, headers?: Record<string, string>): Promise<Visit>;
  hostOf(script: string): string;
}

export async function startHosting(settings: Parameters<typeof startTestServer>[0] = {}): Promise<Hosting> {
  const server = await startTestServer(settings);
  const account = server.ready.account_id;
  const upload = async (path: string, given: ScriptUpload | string): Promise<void> => {
    const { code, bindings = [], metadata = {} } = typeof given === "string" ? { code: given } : given;
    const modules = typeof code === "string" ? { "index.js": code } : code;
    const form = new FormData();
    const main = Object.keys(modules)[0];
    form.set(
      "metadata",
      new Blob(
        [JSON.stringify({ main_module: main, compatibility_date: "2026-11-01", bindings, ...metadata })],
        { type: "application/json" },
      ),
    );
    for (const [name, source] of Object.entries(modules))
      form.set(name, new File([source], name, { type: "application/javascript+module" }));
    const response = await fetch(`${server.ready.api}${path}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${ownerToken}` },
      body: form,
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`PUT ${path}: ${answer}`);
  };
  const subdomain = await server.call("GET", `/accounts/${account}/workers/subdomain`);
  const hostOf = (script: string): string =>
    `${script}.${String(subdomain.body.result.subdomain)}.workers.localhost`;
  return {
    ...server,
    account,
    hostOf,
    deploy: async (name, given) => upload(`/accounts/${account}/workers/scripts/${name}`, given),
    deployCustomer: async (namespace, name, given) =>
      upload(`/accounts/${account}/workers/dispatch/namespaces/${namespace}/scripts/${name}`, given),
    ask: async (script, path, headers) => visit(server.ready.edge, hostOf(script), path, headers),
  };
}
