import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { ownerToken, startTestServer } from "../helpers/server.ts";

/*
 * Public starters, made, built and deployed with the wrangler that each brings, and looked at in a browser through the edge.
 *
 *   node test/proofs/starters.ts [NAME…]
 *
 * They come from the npm registry; those that create-cloudflare takes from GitHub are left out where it cannot be reached.
 * The browser is Chromium: `apt-get install chromium`, or CHROMIUM with the path of one.
 */
const createCloudflare = "cloudflare@2.74.0";
const createVite = "vite@9.3.0";

interface Project {
  /** What npm is asked to create, with arguments after the folder's name. */
  create: [initializer: string, ...args: string[]];
  isOnGitHub?: boolean;
  /** What has to be done before, beyond `npm run build`. */
  prepare?: (folder: string) => Promise<unknown>;
  look: (page: Page, host: string) => Promise<void>;
}
interface Page {
  open(path: string): Promise<void>;
  /** The value of an expression in the page. */
  read(expression: string): Promise<unknown>;
  /** Until an expression in the page is true. */
  until(expression: string): Promise<void>;
}

const text = "document.body.innerText";
const click = (button: string): string =>
  `[...document.querySelectorAll("button")].find((each) => each.innerText.includes(${JSON.stringify(button)})).click()`;
const clicksForName: Project["look"] = async (page) => {
  await page.open("/");
  await page.until(`${text}.includes("Name from API is: unknown")`);
  await page.read(click("Name from API"));
  await page.until(`${text}.includes("Name from API is: Cloudflare")`);
  await page.open("/any/path/of/the/application");
  await page.until(`${text}.includes("Name from API is: unknown")`);
};

const flags = ["--no-deploy", "--no-git", "--no-open", "--no-auto-update", "--no-agents"];
const cloudflare = (...args: string[]): Project["create"] => [createCloudflare, ...args, ...flags];
const framework = (name: string, ...args: string[]): Project["create"] =>
  cloudflare(
    "--category",
    "web-framework",
    "--framework",
    name,
    "--platform",
    "workers",
    "--lang",
    "ts",
    ...args,
  );
const example = (category: string, type: string): Project["create"] =>
  cloudflare("--category", category, "--type", type, "--lang", "ts");
const template = (name: string): Project["create"] =>
  cloudflare("--template", `cloudflare/templates/${name}`);

const projects: Record<string, Project> = {
  vite: {
    create: [createVite, "--template", "vanilla-ts", "--no-interactive"],
    prepare: async (folder) =>
      writeFile(
        join(folder, "wrangler.json"),
        '{"name":"vite","compatibility_date":"2026-01-01","assets":{"directory":"dist"}}',
      ),
    async look(page) {
      await page.open("/");
      await page.until(`document.querySelector("#counter")?.innerText.includes("0")`);
      await page.read(`document.querySelector("#counter").click()`);
      await page.until(`document.querySelector("#counter").innerText.includes("1")`);
      await page.until(
        `[...document.images].every(({ complete, naturalWidth }) => complete && naturalWidth > 0)`,
      );
    },
  },
  react: { create: framework("react", "--variant", "react-ts"), look: clicksForName },
  "vite-react-template": { create: template("vite-react-template"), isOnGitHub: true, look: clicksForName },
  vue: {
    create: framework("vue"),
    async look(page) {
      await page.open("/");
      await page.until(`${text}.includes("You did it!")`);
      await page.read(click("Name from API"));
      await page.until(`${text}.includes("Name from API is: Cloudflare")`);
      await page.open("/about");
      await page.until(`${text}.includes("This is an about page")`);
    },
  },
  /** Hono, with routes that check what comes. */
  openapi: {
    create: example("hello-world", "openapi"),
    async look(page) {
      await page.open("/api/tasks");
      await page.until(`${text}.includes("Build something awesome with Cloudflare Workers")`);
      await page.open("/api/tasks?page=none");
      await page.until(
        `${text}.includes("Expected number, received")||${text}.includes("expected number, received")`,
      );
    },
  },
  workflows: {
    create: example("hello-world", "hello-world-workflows"),
    async look(page) {
      await page.open("/");
      await page.until(`typeof JSON.parse(${text}).id === "string"`);
      const { id } = JSON.parse(String(await page.read(text))) as { id: string };
      await page.open(`/?instanceId=${id}`);
      await page.until(`["running", "waiting"].includes(JSON.parse(${text}).status.status)`);
    },
  },
  hono: {
    create: framework("hono"),
    isOnGitHub: true,
    async look(page) {
      await page.open("/");
      await page.until(`${text}.includes("Hello Hono!")`);
    },
  },
  "with-assets": {
    create: example("hello-world", "hello-world-with-assets"),
    async look(page) {
      await page.open("/");
      await page.until(`${text}.includes("Hello, World!")`);
      await page.read(click("Fetch a random UUID"));
      await page.until(`/[0-9a-f]{8}-[0-9a-f-]{27}/.test(${text})`);
    },
  },
  "astro-blog-starter-template": {
    create: template("astro-blog-starter-template"),
    isOnGitHub: true,
    async look(page) {
      await page.open("/");
      await page.until(`document.querySelector("h1") !== null`);
      await page.open("/blog/first-post/");
      await page.until(`document.querySelector("article")?.innerText.includes("Lorem ipsum")`);
      await page.open("/about");
      await page.until(`document.title !== "" && document.querySelector("article") !== null`);
    },
  },
  "to-do-list-kv-template": {
    create: template("to-do-list-kv-template"),
    isOnGitHub: true,
    async prepare(folder) {
      const made = await wrangler(folder, "kv", "namespace", "create", `to-do ${Date.now()}`);
      const id = /[0-9a-f]{32}/.exec(made.replace(server.ready.account_id, ""))![0];
      const config = join(folder, "wrangler.jsonc");
      await writeFile(config, readFileSync(config, "utf8").replace(/"id": "[0-9a-f]{32}"/, `"id": "${id}"`));
    },
    async look(page) {
      await page.open("/my-list");
      for (const todo of ["water the plants", "read a book"]) {
        await page.until(`document.querySelector("input[name=text]") !== null`);
        await page.read(`document.querySelector("input[name=text]").value = ${JSON.stringify(todo)}`);
        await page.read(click("Add"));
        await page.until(`${text}.includes(${JSON.stringify(todo)})`);
      }
      await page.open("/my-list");
      await page.until(`${text}.includes("water the plants") && ${text}.includes("read a book")`);
    },
  },
  queues: {
    create: example("demo", "queues"),
    prepare: async (folder) => wrangler(folder, "queues", "create", "my-queue"),
    async look(page) {
      const account = server.ready.account_id;
      const { queues, queueMessages } = server.services;
      await page.open("/");
      await page.until(`${text}.includes("Sent message to the queue")`);
      const queue = queues.findByName(account, "my-queue")!;
      while ((await queueMessages.backlog(queue)).count > 0) await delay(50);
    },
  },
  scheduled: {
    create: example("demo", "scheduled"),
    async look(page) {
      await page.open("/");
      await page.until(`${text}.includes("To test the scheduled handler")`);
      const [schedule] = server.services.schedules.list(server.ready.account_id, "scheduled");
      if (schedule?.cron !== "* * * * *") throw new Error("the schedule is not there");
    },
  },
};

const named = process.argv.slice(2);
const root = mkdtempSync(join(tmpdir(), "selvedge-starters-"));
const hasGitHub = await fetch("https://github.com", { method: "HEAD" }).then(
  ({ ok }) => ok,
  () => false,
);
const server = await startTestServer({ privateNetworks: "all" });
const environment = {
  ...process.env,
  CI: "1",
  npm_config_yes: "true",
  CREATE_CLOUDFLARE_TELEMETRY_DISABLED: "1",
  WRANGLER_SEND_METRICS: "false",
  CLOUDFLARE_API_BASE_URL: server.ready.api,
  CLOUDFLARE_API_TOKEN: ownerToken,
  CLOUDFLARE_ACCOUNT_ID: server.ready.account_id,
};
const { subdomain } = (await server.call("GET", `/accounts/${server.ready.account_id}/workers/subdomain`))
  .body.result as { subdomain: string };
const browser = await startBrowser();
const results: [name: string, wrangler: string, result: string][] = [];
for (const [name, { create, isOnGitHub, prepare, look }] of Object.entries(projects)) {
  if (named.length > 0 && !named.includes(name)) continue;
  if (isOnGitHub === true && !hasGitHub) {
    results.push([name, "", "left out: github.com cannot be reached"]);
    continue;
  }
  const folder = join(root, name);
  let version = "";
  try {
    const [initializer, ...args] = create;
    await run(root, "npm", ["create", initializer, name, "--", ...args]);
    if (!existsSync(join(folder, "node_modules"))) await run(folder, "npm", ["install"]);
    version = wranglerVersion(folder);
    await prepare?.(folder);
    const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    if (scripts["build"] !== undefined) await run(folder, "npm", ["run", "build"]);
    await wrangler(folder, "deploy");
    const host = `${name}.${subdomain}.workers.localhost`;
    const page = await browser.open(`http://${host}:${new URL(server.ready.edge).port}`);
    await look(page, host);
    results.push([name, version, "works"]);
  } catch (error) {
    results.push([name, version, `fails: ${(error as Error).message.slice(-2000)}`]);
  }
}
for (const [name, version, result] of results)
  process.stdout.write(`| ${name.padEnd(28)} | wrangler ${version.padEnd(9)} | ${result} |\n`);
browser.close();
await server.close(1000);
rmSync(root, { recursive: true, force: true });
const failed = results.filter(([, , result]) => result.startsWith("fails"));
if (results.length === 0 || failed.length > 0) process.exitCode = 1;

/** The project's own, or ours where it brings none. */
function wranglerOf(folder: string): string {
  const own = join(folder, "node_modules/wrangler");
  return existsSync(own) ? own : resolve("node_modules/wrangler");
}
function wranglerVersion(folder: string): string {
  const { version } = JSON.parse(readFileSync(join(wranglerOf(folder), "package.json"), "utf8")) as {
    version: string;
  };
  return version;
}
async function wrangler(folder: string, ...args: string[]): Promise<string> {
  return run(folder, process.execPath, [join(wranglerOf(folder), "bin/wrangler.js"), ...args]);
}

async function run(folder: string, command: string, args: readonly string[]): Promise<string> {
  try {
    const running = promisify(execFile)(command, args, { cwd: folder, env: environment, maxBuffer: 2 ** 26 });
    running.child.stdin?.end();
    return (await running).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(" ")}: ${stdout}${stderr}`, { cause: error });
  }
}

/** Chromium without a window, spoken to over its debugging port. */
async function startBrowser(): Promise<{ open(origin: string): Promise<Page>; close(): void }> {
  const profile = mkdtempSync(join(tmpdir(), "selvedge-browser-"));
  const child = spawn(
    process.env["CHROMIUM"] ?? "chromium",
    [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--remote-debugging-port=0",
      `--user-data-dir=${profile}`,
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  const address = await new Promise<string>((found, failed) => {
    child.once("error", failed);
    child.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      const match = /DevTools listening on (ws:\S+)/.exec(said);
      if (match !== null) found(match[1]!);
    });
  });
  const { host } = new URL(address);
  return {
    async open(origin) {
      const answer = await fetch(`http://${host}/json/new?about:blank`, { method: "PUT" });
      const { webSocketDebuggerUrl } = (await answer.json()) as { webSocketDebuggerUrl: string };
      return pageOf(webSocketDebuggerUrl, origin);
    },
    close: () => void child.kill("SIGKILL"),
  };
}

async function pageOf(address: string, origin: string): Promise<Page> {
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve, { once: true });
    socket.addEventListener("error", reject, { once: true });
  });
  let last = 0;
  const call = async (method: string, params: object): Promise<Record<string, unknown>> => {
    const id = ++last;
    return new Promise((resolve, reject) => {
      const listen = ({ data }: { data: unknown }): void => {
        const message = JSON.parse(String(data)) as {
          id?: number;
          result: Record<string, unknown>;
          error?: object;
        };
        if (message.id !== id) return;
        socket.removeEventListener("message", listen as never);
        if (message.error === undefined) resolve(message.result);
        else reject(new Error(JSON.stringify(message.error)));
      };
      socket.addEventListener("message", listen as never);
      socket.send(JSON.stringify({ id, method, params }));
    });
  };
  const read = async (expression: string): Promise<unknown> => {
    const { result, exceptionDetails } = await call("Runtime.evaluate", { expression, returnByValue: true });
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { value: unknown }).value;
  };
  return {
    async open(path) {
      await call("Page.navigate", { url: `${origin}${path}` });
    },
    read,
    async until(expression) {
      for (const end = Date.now() + 15_000; ;) {
        const value = await read(expression).catch(() => false);
        if (value === true) return;
        if (Date.now() > end)
          throw new Error(
            `not seen: ${expression}; the page says: ${String(await read(text)).slice(0, 500)}`,
          );
        await delay(50);
      }
    },
  };
}
