import { afterAll, beforeAll, expect, it } from "vitest";
import { ask } from "../scripts/harness.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { isPrevious, Project } from "./harness.ts";

/** Unmodified wrangler deploys, and the edge serves the result. */
let server: TestServer;
let project: Project;
const compatibility_date = "2026-01-01";
const timeout = 300_000;

beforeAll(async () => {
  server = await startTestServer();
  project = new Project(server);
});
afterAll(async () => {
  project.remove();
  await server.close(1000);
});

const greeting = (text: string): string =>
  `export default { fetch(request: Request, env: any) { return new Response(\`${text}\`); } };`;
const answer = async (script: string, path?: string): Promise<string> =>
  (await ask(server, script, path)).body;

it(
  "whoami",
  async () => {
    expect(await project.run(["whoami"])).toContain(server.ready.account_id);
  },
  timeout,
);

it(
  "deploys variables, then again, and prints where the script is",
  async () => {
    project.write({
      "wrangler.json": {
        name: "plain",
        main: "index.ts",
        compatibility_date,
        vars: { A: "hello", N: { a: 1 } },
      },
      "index.ts": greeting("${env.A}${env.N.a}"),
    });
    const output = await project.run(["deploy"]);
    if (!isPrevious) expect(output).toMatch(/plain\.\S+\.workers\.localhost/);
    expect(await answer("plain")).toBe("hello1");
    project.write({ "index.ts": greeting("again ${env.A}") });
    await project.run(["deploy", ...(isPrevious ? [] : ["--message", "the second", "--tag", "v2"])]);
    expect(await answer("plain")).toBe("again hello");
  },
  timeout,
);

it(
  "secrets: put, list, bulk, delete; deploys keep them",
  async () => {
    project.write({ "index.ts": greeting("${env.A} ${env.S} ${env.T}") });
    await project.run(["deploy"]);
    await project.run(["secret", "put", "S"], "secret-s");
    await project.run(["secret", "bulk"], '{"T":"secret-t","U":"secret-u"}');
    expect(await answer("plain")).toBe("hello secret-s secret-t");
    const listed = JSON.parse(await project.run(["secret", "list"])) as { name: string }[];
    expect(listed.map(({ name }) => name)).toEqual(["S", "T", "U"]);
    await project.run(["secret", "delete", "S"], "y");
    await project.run(["deploy"]);
    expect(await answer("plain")).toBe("hello undefined secret-t");
    // For a script that does not exist, one is created.
    await project.run(["secret", "put", "S", "--name", "fresh"], "s");
    expect(server.services.scripts.find({ accountId: server.ready.account_id }, "fresh")).toBeDefined();
  },
  timeout,
);

it(
  "versions, deployments with shares of the requests, rollback",
  async () => {
    project.write({ "index.ts": greeting("three") });
    const uploaded = await project.run(["versions", "upload", "--tag", "three"]);
    const version = /Worker Version ID: (\S+)/.exec(uploaded)![1]!;
    expect(await answer("plain")).toBe("hello undefined secret-t");
    const listed = JSON.parse(await project.run(["versions", "list", "--json"])) as { id: string }[];
    expect(listed.map(({ id }) => id)).toContain(version);
    const before = JSON.parse(await project.run(["deployments", "status", "--json"])) as {
      versions: { version_id: string }[];
    };
    const old = before.versions[0]!.version_id;
    await project.run(["versions", "deploy", `${version}@50%`, `${old}@50%`, "--yes"]);
    const answers = new Set<string>();
    for (let i = 0; i < 60; i++) answers.add(await answer("plain"));
    expect([...answers].toSorted()).toEqual(["hello undefined secret-t", "three"]);
    await project.run(["versions", "deploy", `${version}@100%`, "--yes"]);
    expect(await answer("plain")).toBe("three");
    expect(await project.run(["versions", "view", version])).toContain("three");
    await project.run(["rollback", old, "--message", "back", "--yes"]);
    expect(await answer("plain")).toBe("hello undefined secret-t");
    expect(await project.run(["deployments", "list"])).toContain("back");
    await project.run(["versions", "deploy", `${version}@100%`, "--yes"]);
    await project.run(["versions", "secret", "put", "V"], "v");
    expect(await answer("plain")).toBe("three");
  },
  timeout,
);
