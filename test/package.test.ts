import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blocksOf } from "./helpers/blocks.ts";
import { npm } from "./clients/programs/packages.ts";
import { installPacked } from "./helpers/packed.ts";
import { serve, temporaryFolder, type ServerProcess } from "./helpers/process.ts";

/** The copy of the clone that makes the npm package. */
const clone = temporaryFolder();
/** An empty project with the package, as `npm install` installs it. */
const project = temporaryFolder();
const token = "package-test-token";
const run = promisify(execFile);
const program = join(project, "node_modules/selvedge/bin/selvedge.js");
let server: ServerProcess | undefined;

beforeAll(async () => {
  await installPacked(clone, temporaryFolder(), project);
  server = await serve(["--ephemeral"], { SELVEDGE_API_TOKEN: token }, [], program);
}, 300_000);
afterAll(async () => {
  server?.process.kill("SIGTERM");
  expect(await server?.exited).toBe(0);
  expect(server?.stderr()).not.toContain('"level":"error"');
});

/** Runs a program of an example of the package, and returns the output. */
async function example(name: string, ...args: string[]): Promise<string> {
  const file = join(project, "node_modules/selvedge/examples", name);
  const { stdout } = await run(process.execPath, [file, ...args], {
    env: {
      ...process.env,
      CLOUDFLARE_BASE_URL: server!.ready.api,
      CLOUDFLARE_API_TOKEN: token,
      CLOUDFLARE_ACCOUNT_ID: server!.ready.account_id,
      EDGE_URL: server!.ready.edge,
      NAME_SERVER: server!.ready.dns,
    },
  });
  return stdout;
}

it("leaves the clone's package.json as it was", () => {
  expect(readFileSync(join(clone, "package.json"), "utf8")).toBe(readFileSync("package.json", "utf8"));
});

it("depends on packages with binaries only, and puts no node into the project's .bin", () => {
  const { dependencies } = JSON.parse(
    readFileSync(join(project, "node_modules/selvedge/package.json"), "utf8"),
  ) as { dependencies: object };
  expect(Object.keys(dependencies)).toEqual(["sharp", "workerd"]);
  const commands = readdirSync(join(project, "node_modules/.bin"));
  expect(commands).toContain("selvedge");
  expect(commands).not.toContain("node");
});

it("names the licences of the packages inside, each with a version that its bill of materials has", () => {
  const shipped = join(project, "node_modules/selvedge");
  const licences = readFileSync(join(shipped, "dist/THIRD-PARTY-LICENSES.txt"), "utf8");
  const inside = [...licences.matchAll(/^(\S+) (\d\S+) \(/gm)].map(
    ([, name, version]) => `${name}@${version}`,
  );
  for (const name of ["hono", "undici", "kysely", "zod"])
    expect(inside.some((each) => each.startsWith(`${name}@`))).toBe(true);
  const { components } = JSON.parse(readFileSync(join(shipped, "bom.cdx.json"), "utf8")) as {
    components: { "bom-ref": string }[];
  };
  const listed = components.map((each) => each["bom-ref"]);
  expect(inside.filter((each) => !listed.includes(each))).toEqual([]);
});

it("runs scripts, a snippet and a workflow", async () => {
  expect(await example("workflow/run.js")).toMatch(/^complete /);
  expect(await example("edge/deploy.js")).toContain("/app/ 200 DENY origin of www.garden.example");
  expect(await example("queue/deploy.js")).toMatch(/^http:\/\/jobs\./);
});

it("can be imported by a program in TypeScript", async () => {
  const file = join(project, "start.mts");
  writeFileSync(
    file,
    `import { startSelvedge, type Selvedge } from "selvedge";
     const platform: Selvedge = await startSelvedge({ settings: { defaultPlan: "free" } });
     const answer: Response = await platform.fetch("http://unknown.example/");
     process.stdout.write(\`\${answer.status} \${platform.accountId}\`);
     await platform.close();`,
  );
  const options = ["--ignoreConfig", "--noEmit", "--strict", "--module", "nodenext", "--target", "es2024"];
  const types = [
    "--lib",
    "es2024,esnext.disposable",
    "--types",
    "node",
    "--typeRoots",
    resolve("node_modules/@types"),
  ];
  await run("tsc", [...options, ...types, file], { cwd: project });
  expect((await run(process.execPath, [file], { cwd: project })).stdout).toMatch(/^404 [0-9a-f]{32}$/);
});

it("has types for programs in TypeScript that are CommonJS", async () => {
  const file = join(project, "kit.test.cts");
  writeFileSync(
    file,
    `import { startSelvedge, type Seed } from "selvedge";
     import { expect, selvedge } from "selvedge/jest";
     const state: Seed = { tokens: { ci: { permissions: ["DNS Write"] } } };
     const edge = selvedge({ state });
     export const check = async (): Promise<string> => {
       await expect(edge()).toHaveCalled("zone_list");
       await (await startSelvedge()).close();
       return edge().tokens["ci"]!;
     };`,
  );
  const options = ["--ignoreConfig", "--noEmit", "--strict", "--target", "es2024", "--types", "node"];
  const found = ["--lib", "es2024,esnext.disposable", "--typeRoots", resolve("node_modules/@types")];
  for (const module of ["node16", "commonjs"])
    await run("tsc", [...options, ...found, "--module", module, file], { cwd: project });
});

/** A test that uses the runner of node:test. */
function kitTest(): string {
  const file = join(project, "kit.test.mjs");
  writeFileSync(
    file,
    `import { test } from "node:test";
     import { assertCalledOnly, selvedge } from "selvedge/node-test";
     const edge = selvedge();
     test("calls nothing", () => assertCalledOnly(edge()));`,
  );
  return file;
}

it("tests with its runner of node:test, and runs a command with a platform", async () => {
  const file = kitTest();
  await run(process.execPath, [program, "run", "--", process.execPath, file], { cwd: project });
});

it("the jobs of docs/testing.md keep the calls of failed tests", async () => {
  for (const name of ["github.yml", "gitlab.yml"]) {
    const { code } = blocksOf("docs/testing.md").find(({ use }) => use === name)!;
    const commands = [...code.matchAll(/^ +- (?:run: )?(np[mx] .+)$/gm)].map(([, command]) => command!);
    expect(commands).toEqual(["npm ci", "npx selvedge run -- npm test"]);
    expect(code).toMatch(/path.*\bselvedge-calls\.har\b/);
  }
  const path = join(project, "package.json");
  const described = JSON.parse(readFileSync(path, "utf8")) as object;
  const scripts = { test: "curl -s $CLOUDFLARE_BASE_URL/zonez; exit 3" };
  writeFileSync(path, JSON.stringify({ ...described, scripts }));
  const job = run("npx", ["selvedge", "run", "--", "npm", "test"], { cwd: project });
  await expect(job).rejects.toMatchObject({ code: 3 });
  expect(readFileSync(join(project, "selvedge-calls.har"), "utf8")).toContain("/zonez");
});

describe("the runners of docs/testing.md", () => {
  const blocks = blocksOf("docs/testing.md");
  const commands = blocks.filter(({ use }) => use === "package").map(({ code }) => code.trim());
  const jest = npm("jest@30.5.2");
  const programs: Record<string, string | undefined> = {
    jest: "folder" in jest ? join(jest.folder, "node_modules/.bin/jest") : undefined,
    playwright: resolve("node_modules/.bin/playwright"),
  };
  beforeAll(() => {
    mkdirSync(join(project, "node_modules/@playwright"));
    for (const name of ["cloudflare", "@playwright/test"])
      symlinkSync(resolve("node_modules", name), join(project, "node_modules", name));
    for (const { use, code } of blocks)
      if (commands.some((command) => command.endsWith(` ${use}`))) writeFileSync(join(project, use), code);
  });

  it("there is one for Jest, and one for Playwright", () => {
    expect(commands.map((command) => command.split(" ")[0])).toEqual(["jest", "playwright"]);
  });

  it.for(commands)("%s", async (command, { skip }) => {
    const [name, ...args] = command.split(" ");
    const program = programs[name!] ?? skip(`${name} cannot be installed here`);
    const { stdout, stderr } = await run(program, args, { cwd: project });
    expect(stdout + stderr).toMatch(/\b1 passed/);
  });
});

it("makes pictures and answers DNS", async () => {
  const photo = join(temporaryFolder(), "photo.jpg");
  await sharp({ create: { width: 1600, height: 1200, channels: 3, background: "teal" } }).toFile(photo);
  const saved = (await example("images/thumbnails.js", photo)).trim().split("\n");
  expect(saved).toHaveLength(3);
  expect(await example("dns/zone.js")).toContain("records imported");
});

it("checks the machine with its doctor", async () => {
  const { stdout } = await run(process.execPath, [program, "doctor", "--ephemeral"]).catch(
    (error: unknown) => error as { stdout: string },
  );
  expect(stdout).toContain("workerd");
});

const [older] = execFileSync("which", ["-a", "node"], { encoding: "utf8" })
  .trim()
  .split("\n")
  .filter((node) => Number(/^v(\d+)/.exec(execFileSync(node, ["--version"], { encoding: "utf8" }))![1]) < 26);
if (older !== undefined)
  it("says in one sentence which Node it needs, under an older one", async () => {
    const failure = await run(older, [resolve(program), "serve"]).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 1, stdout: "" });
    expect((failure as { stderr: string }).stderr).toMatch(
      /^Selvedge needs Node 26\.4 or newer, and this is Node [^\n]+\n$/,
    );
  });

if (older !== undefined)
  it("tests on an older Node, with the package node beside it for the platform", async () => {
    symlinkSync(resolve("node_modules/node"), join(project, "node_modules/node"));
    expect((await run(older, ["--test", kitTest()], { cwd: project })).stdout).toMatch(/pass 1\n/);
  });
