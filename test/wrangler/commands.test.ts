import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask } from "../scripts/harness.ts";
import { isPrevious, Project } from "./harness.ts";

/** Commands of wrangler that the other tests do not run. */
let server: TestServer;
let project: Project;
const compatibility_date = "2026-01-01";
const timeout = 300_000;
const echo = `export default { fetch: (request, env) => new Response([env.TEXT, env.A, env.B].join(" ")) };`;

beforeAll(async () => {
  server = await startTestServer();
  project = new Project(server);
  project.write({
    "wrangler.json": { name: "worker", main: "index.js", compatibility_date, vars: { TEXT: "one" } },
    "index.js": echo,
  });
});
afterAll(async () => {
  project.remove();
  await server.close(1000);
});

const run = async (...args: string[]): Promise<string> => project.run(args);
const json = async <T>(...args: string[]): Promise<T> => JSON.parse(await run(...args, "--json")) as T;
const answer = async (): Promise<string> => (await ask(server, "worker")).body;
const uploaded = (output: string): string => /Worker Version ID: (\S+)/.exec(output)![1]!;

it(
  "kv: what was put can be read in bulk, and a namespace gets another name",
  async () => {
    const id = /[0-9a-f]{32}/.exec(await run("kv", "namespace", "create", "first"))![0];
    const at = ["--namespace-id", id, ...(isPrevious ? [] : ["--remote"])];
    project.write({ "value.bin": "from a file" });
    await run("kv", "key", "put", "filed", "--path", "value.bin", ...at);
    expect(await run("kv", "key", "get", "filed", ...at)).toContain("from a file");
    await run("kv", "key", "put", "later", "x", "--expiration", "4102444800", ...at);
    expect(await project.attempt(["kv", "key", "get", "missing", ...at])).toMatchObject({
      output: expect.stringMatching(/not found/i),
    });
    if (isPrevious) return; // wrangler 3 lacks the following
    project.write({ "keys.json": ["filed", "missing"] });
    expect(await run("kv", "bulk", "get", "keys.json", ...at)).toContain("from a file");
    const [namespace] = await server.services.kv.listNamespaces(server.ready.account_id);
    await run("kv", "namespace", "rename", namespace!.title, "--new-name", "second");
    expect(await run("kv", "namespace", "list")).toContain('"second"');
  },
  timeout,
);

it(
  "versions with secrets of their own, put to work by their tags",
  async () => {
    await run("deploy");
    project.write({ "secrets.json": { A: "a", B: "b" } });
    await run("versions", "secret", "bulk", "secrets.json");
    expect(await answer()).toBe("one  ");
    const [latest] = (await json<{ id: string }[]>("versions", "list")).slice(-1);
    await run("versions", "deploy", latest!.id, "--percentage", "100", "--yes");
    expect(await answer()).toBe("one a b");
    expect(await run("versions", "secret", "list")).toMatch(/A[\s\S]*B/);
    await project.run(["versions", "secret", "delete", "B"], "y");
    expect(await answer()).toBe("one a b");
    const listed = await json<{ id: string }[]>("versions", "list");
    expect(await run("versions", "list")).toContain(listed.at(-1)!.id);
    await run("versions", "deploy", `${listed.at(-1)!.id}@100%`, "--yes", "--message", "without B");
    expect(await answer()).toBe("one a ");
    expect(await run("versions", "view", listed.at(-1)!.id, "--json")).toContain(listed.at(-1)!.id);

    project.write({ "index.js": echo.replace("env.TEXT", '"two"') });
    const version = uploaded(await run("versions", "upload", "--tag", "second", "--message", "the second"));
    if (isPrevious) await run("versions", "deploy", `${version}@100%`, "--yes");
    else await run("versions", "deploy", "--version-tag", "second@100", "--yes");
    expect(await answer()).toBe("two a ");
    const deployments = await json<{ annotations: Record<string, string> }[]>("deployments", "list");
    expect(JSON.stringify(deployments)).toContain("without B");
    expect(await run("deployments", "status")).toContain(version);
    // Back to the previous deployment, which wrangler finds itself.
    await run("rollback", "--yes", "--message", "back");
    expect(await answer()).toBe("one a ");
  },
  timeout,
);

it(
  "secrets from files, removed again by null, and for a deploy",
  async () => {
    project.write({ "secrets.json": { A: "other" }, "dot.env": "B=from env\n" });
    await run("deploy");
    await run("secret", "bulk", "secrets.json");
    expect(await answer()).toBe("two other ");
    if (isPrevious) return; // wrangler 3 lacks the following
    await run("secret", "bulk", "dot.env");
    expect(await answer()).toBe("two other from env");
    project.write({ "secrets.json": { A: null } });
    await run("secret", "bulk", "secrets.json");
    expect(await answer()).toBe("two  from env");
    project.write({ "secrets.json": { A: "with the deploy" } });
    await run("deploy", "--secrets-file", "secrets.json");
    expect(await answer()).toBe("two with the deploy from env");
    await run("versions", "upload", "--secrets-file", "secrets.json", "--keep-vars");
    expect(await run("secret", "list", "--format", "pretty")).toContain("Secret Name: A");
  },
  timeout,
);

it(
  "queues: consumers by their kind",
  async () => {
    project.write({ "index.js": "export default { queue() {} };" });
    await run("deploy");
    await run("queues", "create", "jobs", "--message-retention-period-secs", "600");
    await run("queues", "consumer", "worker", "add", "jobs", "worker", "--max-concurrency", "2");
    if (!isPrevious) {
      expect(await run("queues", "consumer", "list", "jobs")).toContain("worker");
      expect(await run("queues", "consumer", "worker", "list", "jobs")).toContain("worker");
      expect(await run("queues", "consumer", "http", "list", "jobs")).not.toContain("Script");
    }
    await run("queues", "consumer", "remove", "jobs", "worker");
    const twice = await project.attempt(["queues", "create", "jobs"]);
    expect(twice).toMatchObject({ code: 1, output: expect.stringContaining("already taken") });
    await run("queues", "delete", "jobs");
  },
  timeout,
);

it(
  "dispatch namespaces: a name that is taken, one that is not there",
  async () => {
    await run("dispatch-namespace", "create", "customers");
    project.write({ "index.js": echo });
    await run("deploy", "--dispatch-namespace", "customers", "--outdir", "built");
    expect(readFileSync(join(project.folder, "built/index.js"), "utf8")).toContain("env.TEXT");
    const again = await project.attempt(["dispatch-namespace", "create", "customers"]);
    expect(again).toMatchObject({ code: 1, output: expect.stringContaining("customers") });
    const missing = await project.attempt(["dispatch-namespace", "get", "none"]);
    expect(missing).toMatchObject({ code: 1, output: expect.stringContaining("none") });
    await run("dispatch-namespace", "delete", "customers");
  },
  timeout,
);
