import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask } from "../scripts/harness.ts";
import { Project } from "./harness.ts";

/** wrangler deploys a large site, and again with one file changed. */
let server: TestServer;
let project: Project;
const timeout = 300_000;
const count = 5000;
const name = (n: number): string => `pages/${n % 100}/page-${n}.html`;
const page = (n: number, text = "page"): string => `<!doctype html><title>${text} ${n}</title><p>${n}</p>`;

beforeAll(async () => {
  server = await startTestServer();
  project = new Project(server);
  const files = Object.fromEntries(Array.from({ length: count }, (_, n) => [`public/${name(n)}`, page(n)]));
  project.write({
    ...files,
    "wrangler.json": { name: "large", compatibility_date: "2026-01-01", assets: { directory: "public" } },
  });
});
afterAll(async () => {
  project.remove();
  await server.close(1000);
});

const body = async (n: number): Promise<string> =>
  (await ask(server, "large", `/${name(n).replace(/\.html$/, "")}`)).body;

it(
  `deploys ${count} files, then one that has changed, and serves them`,
  async () => {
    expect(await project.run(["deploy"])).toContain(`Uploaded ${count} of ${count} assets`);
    for (const n of [0, 1, 2500, count - 1]) expect(await body(n)).toBe(page(n));
    project.write({ [`public/${name(2500)}`]: page(2500, "changed") });
    const again = await project.run(["deploy"]);
    expect(again).toContain("Uploaded 1 of 1 asset");
    expect(again).toContain(`${count - 1} already uploaded`);
    expect(await body(2500)).toBe(page(2500, "changed"));
    expect(await body(2501)).toBe(page(2501));
    // Without changes nothing is uploaded.
    expect(await project.run(["deploy"])).toMatch(/No (updated asset )?files to upload/);
  },
  timeout,
);
