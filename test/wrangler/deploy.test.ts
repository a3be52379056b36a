import { expect, it } from "vitest";
import { ask } from "../scripts/harness.ts";
import { isPrevious } from "./harness.ts";
import { useProject } from "./use-project.ts";

/** Unmodified wrangler deploys, and the edge serves the result. */
const used = useProject();
const compatibility_date = "2026-01-01";
const timeout = 300_000;

const greeting = (text: string): string =>
  `export default { fetch(request: Request, env: any) { return new Response(\`${text}\`); } };`;
const answer = async (script: string, path?: string): Promise<string> =>
  (await ask(used.server, script, path)).body;

it(
  "whoami",
  async () => {
    expect(await used.project.run(["whoami"])).toContain(used.server.ready.account_id);
  },
  timeout,
);

it(
  "deploys variables, then again, and prints where the script is",
  async () => {
    used.project.write({
      "wrangler.json": {
        name: "plain",
        main: "index.ts",
        compatibility_date,
        vars: { A: "hello", N: { a: 1 } },
      },
      "index.ts": greeting("${env.A}${env.N.a}"),
    });
    const output = await used.project.run(["deploy"]);
    if (!isPrevious) expect(output).toMatch(/plain\.\S+\.workers\.localhost/);
    expect(await answer("plain")).toBe("hello1");
    used.project.write({ "index.ts": greeting("again ${env.A}") });
    await used.project.run(["deploy", ...(isPrevious ? [] : ["--message", "the second", "--tag", "v2"])]);
    expect(await answer("plain")).toBe("again hello");
  },
  timeout,
);

it(
  "secrets: put, list, bulk, delete; deploys keep them",
  async () => {
    used.project.write({ "index.ts": greeting("${env.A} ${env.S} ${env.T}") });
    await used.project.run(["deploy"]);
    await used.project.run(["secret", "put", "S"], "secret-s");
    await used.project.run(["secret", "bulk"], '{"T":"secret-t","U":"secret-u"}');
    expect(await answer("plain")).toBe("hello secret-s secret-t");
    const listed = JSON.parse(await used.project.run(["secret", "list"])) as { name: string }[];
    expect(listed.map(({ name }) => name)).toEqual(["S", "T", "U"]);
    await used.project.run(["secret", "delete", "S"], "y");
    await used.project.run(["deploy"]);
    expect(await answer("plain")).toBe("hello undefined secret-t");
    // For a script that does not exist, one is created.
    await used.project.run(["secret", "put", "S", "--name", "fresh"], "s");
    expect(
      used.server.services.scripts.find({ accountId: used.server.ready.account_id }, "fresh"),
    ).toBeDefined();
  },
  timeout,
);

it(
  "versions, deployments with shares of the requests, rollback",
  async () => {
    used.project.write({ "index.ts": greeting("three") });
    const uploaded = await used.project.run(["versions", "upload", "--tag", "three"]);
    const version = /Worker Version ID: (\S+)/.exec(uploaded)![1]!;
    expect(await answer("plain")).toBe("hello undefined secret-t");
    const listed = JSON.parse(await used.project.run(["versions", "list", "--json"])) as { id: string }[];
    expect(listed.map(({ id }) => id)).toContain(version);
    const before = JSON.parse(await used.project.run(["deployments", "status", "--json"])) as {
      versions: { version_id: string }[];
    };
    const old = before.versions[0]!.version_id;
    await used.project.run(["versions", "deploy", `${version}@50%`, `${old}@50%`, "--yes"]);
    const answers = new Set<string>();
    for (let i = 0; i < 60; i++) answers.add(await answer("plain"));
    expect([...answers].toSorted()).toEqual(["hello undefined secret-t", "three"]);
    await used.project.run(["versions", "deploy", `${version}@100%`, "--yes"]);
    expect(await answer("plain")).toBe("three");
    expect(await used.project.run(["versions", "view", version])).toContain("three");
    await used.project.run(["rollback", old, "--message", "back", "--yes"]);
    expect(await answer("plain")).toBe("hello undefined secret-t");
    expect(await used.project.run(["deployments", "list"])).toContain("back");
    await used.project.run(["versions", "deploy", `${version}@100%`, "--yes"]);
    await used.project.run(["versions", "secret", "put", "V"], "v");
    expect(await answer("plain")).toBe("three");
  },
  timeout,
);
