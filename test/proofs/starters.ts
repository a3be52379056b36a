import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { ownerToken, startTestServer } from "../helpers/server.ts";

/*
 * Projects of others, deployed with the wrangler that each brings, and looked at in a browser through the edge.
 *
 *   node test/proofs/starters.ts FOLDER [NAME…]
 *
 * In the folder are projects under the names below, with their packages installed. They are made by
 *   npm create cloudflare@latest react -- --category web-framework --framework react --variant react-ts --no-deploy
 *   npm create cloudflare@latest with-assets -- --category hello-world --type hello-world-with-assets --lang ts --no-deploy
 *   npm create cloudflare@latest queues -- --category demo --type queues --lang ts --no-deploy   (and scheduled)
 *   npm create vite@latest vite -- --template vanilla-ts
 * and by copying templates of github.com/cloudflare/templates (vite-react-template, to-do-list-kv-template,
 * astro-blog-starter-template) and of github.com/honojs/starter (cloudflare-workers, as hono).
 */
interface Project {
  /** The name that it is deployed under. */
  script: string;
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

const projects: Record<string, Project> = {
  vite: {
    script: "vite-starter",
    prepare: async (folder) =>
      writeFile(
        join(folder, "wrangler.json"),
        '{"name":"vite-starter","compatibility_date":"2026-01-01","assets":{"directory":"dist"}}',
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
  react: { script: "reactapp", look: clicksForName },
  "vite-react-template": { script: "vite-react-template", look: clicksForName },
  hono: {
    script: "hono-starter",
    async look(page) {
      await page.open("/");
      await page.until(`${text}.includes("Hello Hono!")`);
    },
  },
  "with-assets": {
    script: "withassets",
    async look(page) {
      await page.open("/");
      await page.until(`${text}.includes("Hello, World!")`);
      await page.read(click("Fetch a random UUID"));
      await page.until(`/[0-9a-f]{8}-[0-9a-f-]{27}/.test(${text})`);
    },
  },
  "astro-blog-starter-template": {
    script: "astro-blog-starter-template",
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
    script: "to-do-list-kv-template",
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
    script: "queuesapp",
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
    script: "scheduledapp",
    async look(page) {
      await page.open("/");
      await page.until(`${text}.includes("To test the scheduled handler")`);
      const [schedule] = server.services.schedules.list(server.ready.account_id, "scheduledapp");
      if (schedule?.cron !== "* * * * *") throw new Error("the schedule is not there");
    },
  },
};

const [root, ...named] = process.argv.slice(2);
if (root === undefined) throw new Error("Expected the folder with the projects");
const server = await startTestServer({ privateNetworks: "all" });
const environment = {
  ...process.env,
  CI: "1",
  WRANGLER_SEND_METRICS: "false",
  CLOUDFLARE_API_BASE_URL: server.ready.api,
  CLOUDFLARE_API_TOKEN: ownerToken,
  CLOUDFLARE_ACCOUNT_ID: server.ready.account_id,
};
const { subdomain } = (await server.call("GET", `/accounts/${server.ready.account_id}/workers/subdomain`))
  .body.result as { subdomain: string };
const browser = await startBrowser();
const results: [name: string, wrangler: string, result: string][] = [];
for (const [name, { script, prepare, look }] of Object.entries(projects)) {
  const folder = resolve(root, name);
  if (!existsSync(folder) || (named.length > 0 && !named.includes(name))) continue;
  const version = wranglerVersion(folder);
  try {
    await prepare?.(folder);
    const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    if (scripts["build"] !== undefined) await run(folder, "npm", ["run", "build"]);
    await wrangler(folder, "deploy");
    const host = `${script}.${subdomain}.workers.localhost`;
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
if (results.length === 0 || results.some(([, , result]) => result !== "works")) process.exitCode = 1;

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
    return (await promisify(execFile)(command, args, { cwd: folder, env: environment })).stdout;
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
