import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { TestServer } from "../../helpers/server.ts";
import type { Page } from "./browser.ts";
import type { Recipe, Wrangler } from "./workshop.ts";

/*
 * The newest releases of the creators whose own pinned creators were all on npm when they were chosen:
 * create-cloudflare 2.74.0 asks for an sv and an @angular/create that were not.
 */
const createCloudflare = "cloudflare@2.73.0";
const createHono = "hono@0.19.5";
const createVite = "vite@9.3.0";

export interface Project extends Recipe {
  /** Makes what the starter's configuration names, on every run. */
  provide?: (wrangler: Wrangler, folder: string, server: TestServer) => Promise<unknown>;
  look: (page: Page, server: TestServer) => Promise<void>;
  /** Whether it is visited over HTTPS, because its client opens `wss:` on every host but localhost itself. */
  isSecure?: boolean;
}

const flags = ["--no-deploy", "--no-git", "--no-open", "--no-auto-update", "--no-agents"];
const cloudflare = (...args: string[]): Recipe["create"] => [createCloudflare, ...args, ...flags];
const example = (category: string, type: string, lang: "ts" | "js" = "ts"): Recipe["create"] =>
  cloudflare("--category", category, "--type", type, "--lang", lang);
/** Arguments after `--` go to the framework's own creator. */
const framework = (
  name: string,
  lang: "ts" | "js",
  args: string[] = [],
  own: string[] = [],
): Recipe["create"] => [
  ...cloudflare(
    "--category",
    "web-framework",
    "--framework",
    name,
    "--platform",
    "workers",
    "--lang",
    lang,
    ...args,
  ),
  ...(own.length === 0 ? [] : ["--", ...own]),
];
const template = (name: string): Recipe["create"] => cloudflare("--template", `cloudflare/templates/${name}`);
const hono = (name: string): Recipe["create"] => [createHono, "--template", name, "--install", "--pm", "npm"];
const vite = (template: string): Recipe["create"] => [createVite, "--template", template, "--no-interactive"];

const staticSite = (name: string, directory: string): NonNullable<Recipe["prepare"]> =>
  async function prepare(folder) {
    const config = { name, compatibility_date: "2026-01-01", assets: { directory } };
    await writeFile(join(folder, "wrangler.json"), JSON.stringify(config));
  };

const seesAt = (path: string, ...texts: string[]): Project["look"] =>
  async function look(page) {
    await page.open(path);
    for (const text of texts) await page.sees(text);
  };

/** For starters whose words another project may change: the page is there, says something, and runs without errors. */
const showsSomething: Project["look"] = async (page) => {
  await page.open("/");
  await page.holds(`(document.body?.innerText ?? "").trim() !== ""`);
};
/** A page, an API and client-side routes in one script. */
const clicksForName: Project["look"] = async (page) => {
  await page.open("/");
  await page.sees("Name from API is: unknown");
  await page.clicks("button", /name/i);
  await page.sees("Name from API is: Cloudflare");
  await page.open("/any/path/of/the/application");
  await page.sees("Name from API is: unknown");
};
const looksAtVue: Project["look"] = async (page) => {
  await page.open("/");
  await page.sees("You did it!");
  await page.clicks("button", /name/i);
  await page.sees("Name from API is: Cloudflare");
  await page.clicks("link", "About");
  await page.sees("This is an about page");
  await page.open("/about");
  await page.sees("This is an about page");
};
const looksAtAssets: Project["look"] = async (page) => {
  await page.open("/");
  await page.sees("Hello, World!");
  await page.clicks("button", "Fetch a random UUID");
  await page.holds(`/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(document.querySelector("#random").innerText)`);
};
const looksAtWorkflow: Project["look"] = async (page) => {
  await page.open("/");
  const { id } = JSON.parse(await page.text()) as { id: string };
  for (const end = Date.now() + 20_000; ;) {
    await page.open(`/?instanceId=${id}`);
    const shown = await page.text();
    const { status } = (JSON.parse(shown) as { status: { status: string } }).status;
    if (status === "running" || status === "waiting") return page.sees(`"status":"${status}"`);
    if (status !== "queued" || Date.now() > end) throw new Error(`the instance is not running: ${shown}`);
  }
};
const looksAtQueue: Project["look"] = async (page, { ready, services }) => {
  await page.open("/");
  await page.sees("Sent message to the queue");
  const queue = services.queues.findByName(ready.account_id, "my-queue")!;
  const end = Date.now() + 30_000;
  while ((await services.queueMessages.backlog(queue)).count > 0) {
    if (Date.now() > end) throw new Error("the queue is not consumed");
    await delay(50);
  }
};
/** The two starters share the queue's name, and a queue has one consumer. */
const aQueue: Project["provide"] = async (wrangler, _, { services, ready }) => {
  const queue = services.queues.findByName(ready.account_id, "my-queue");
  if (queue !== undefined) await wrangler.run("queues", "delete", "my-queue");
  await wrangler.run("queues", "create", "my-queue");
};
const looksAtSchedule = (name: string): Project["look"] =>
  async function look(page, { ready, services }) {
    await page.open("/");
    await page.sees("To test the scheduled handler");
    const [schedule] = services.schedules.list(ready.account_id, name);
    if (schedule?.cron !== "* * * * *") throw new Error("the schedule is not there");
  };
const looksAtCommon: Project["look"] = async (page) => {
  await page.open("/");
  await page.sees("Try making requests to:");
  await page.clicks("link", "/api/todos");
  await page.sees("Todos Index!");
  await page.open("/api/todos/7");
  await page.sees("Todo #7");
  await page.open("/api/none", 404);
  await page.sees("Not Found.");
};
/** Creates the database that the configuration names, and applies the migrations. */
const aDatabase = (name: string, file: string): NonNullable<Project["provide"]> =>
  async function provide(wrangler, folder, server) {
    await wrangler.run("d1", "create", name);
    const path = `/accounts/${server.ready.account_id}/d1/database/${name}`;
    const { body } = await server.call("GET", path);
    const { uuid } = body.result as { uuid: string };
    const config = join(folder, file);
    const text = readFileSync(config, "utf8");
    await writeFile(config, text.replace(/("database_id": )"[^"]*"/, `$1"${uuid}"`));
    await wrangler.run("d1", "migrations", "apply", "DB", "--remote");
  };
const looksAtChat: Project["look"] = async (page) => {
  await page.open("/room-of-the-proof");
  // The page forgets what is sent before the room's first answer, so it comes first for a socket of the proof too.
  await page.holds(`(globalThis.proof ??= Object.assign(
    new WebSocket("wss://" + location.host + "/parties/chat/room-of-the-proof"),
    { onmessage() { globalThis.hasAnswer = true; } },
  )) && globalThis.hasAnswer === true`);
  for (const message of ["Hello, room!", "Is anybody here?"]) {
    await page.fills("input[name=content]", message);
    await page.clicks("button", "Send");
    await page.sees(message);
  }
  // The messages come from the object's database, over a new WebSocket.
  await page.open("/room-of-the-proof");
  await page.sees("Hello, room!");
  await page.sees("Is anybody here?");
};
/** A workflow tells an object about its steps, and the page reads them over the object's WebSocket. */
const looksAtSteps: Project["look"] = async (page) => {
  const canStart = `![...document.querySelectorAll("button")].find(({ innerText }) => innerText === "START").disabled`;
  await page.open("/");
  await page.holds(canStart);
  await page.clicks("button", "START");
  await page.clicks("button", "Approve");
  await page.holds(canStart);
};
/** A worker with a web page that asks an object for a greeting. */
const greets: Project["look"] = async (page) => {
  await page.open("/");
  await page.sees("Hello, world!");
};
const countsClicks: Project["look"] = async (page) => {
  await page.open("/");
  await page.clicks("button", /count is/i);
  await page.clicks("button", /count is 1/i);
  await page.holds(`/count is 2/i.test(document.querySelector("button").innerText)`);
  await page.holds(
    `[...document.images].every(({ complete, naturalWidth }) => complete && naturalWidth > 0)`,
  );
};

/** A starter of create-vite, whose build is deployed as static assets. */
const viteSite = (name: string, framework: string): Project => ({
  create: vite(framework),
  prepare: staticSite(name, "dist"),
  look: countsClicks,
});

/** The key is the name of the project, and so of its script. */
export const projects: Record<string, Project> = {
  "hello-world": { create: example("hello-world", "hello-world"), look: seesAt("/", "Hello World!") },
  "hello-world-js": {
    create: example("hello-world", "hello-world", "js"),
    look: seesAt("/", "Hello World!"),
  },
  "assets-only": {
    create: example("hello-world", "hello-world-assets-only"),
    look: seesAt("/", "Hello, World!", "This page comes from a static asset"),
  },
  "with-assets": { create: example("hello-world", "hello-world-with-assets"), look: looksAtAssets },
  "with-assets-js": { create: example("hello-world", "hello-world-with-assets", "js"), look: looksAtAssets },
  workflows: { create: example("hello-world", "hello-world-workflows"), look: looksAtWorkflow },
  "workflows-js": { create: example("hello-world", "hello-world-workflows", "js"), look: looksAtWorkflow },
  "durable-object": { create: example("hello-world", "hello-world-durable-object"), look: greets },
  "durable-object-js": { create: example("hello-world", "hello-world-durable-object", "js"), look: greets },
  "durable-object-assets": {
    create: example("hello-world", "hello-world-durable-object-with-assets"),
    look: greets,
  },
  /** Hono and chanfana, with routes that check what comes. */
  openapi: {
    create: example("hello-world", "openapi"),
    async look(page) {
      await page.open("/api/tasks");
      await page.sees("Build something awesome with Cloudflare Workers");
      await page.open("/api/tasks?page=none", 400);
      await page.sees("xpected number, received");
      await page.open("/api/tasks/clean-room");
      await page.sees("this needs to be done");
    },
  },
  queues: { create: example("demo", "queues"), provide: aQueue, look: looksAtQueue },
  "queues-js": { create: example("demo", "queues", "js"), provide: aQueue, look: looksAtQueue },
  scheduled: { create: example("demo", "scheduled"), look: looksAtSchedule("scheduled") },
  "scheduled-js": { create: example("demo", "scheduled", "js"), look: looksAtSchedule("scheduled-js") },
  common: { create: example("demo", "common"), look: looksAtCommon },
  "common-js": { create: example("demo", "common", "js"), look: looksAtCommon },
  react: { create: framework("react", "ts", ["--variant", "react-ts"]), look: clicksForName },
  "react-js": { create: framework("react", "js", ["--variant", "react"]), look: clicksForName },
  vue: { create: framework("vue", "ts"), look: looksAtVue },
  "vue-js": { create: framework("vue", "js"), look: looksAtVue },
  svelte: {
    create: framework(
      "svelte",
      "ts",
      [],
      ["--template", "demo", "--types", "ts", "--no-add-ons", "--no-install"],
    ),
    async look(page) {
      await page.open("/");
      await page.sees("to your new SvelteKit app");
      await page.clicks("button", "Increase the counter by one");
      await page.holds(`document.querySelector(".counter-digits strong:last-child").innerText === "1"`);
      // A form that the server answers, with what was guessed in a cookie.
      await page.clicks("link", "Sverdle");
      for (const letter of "crane") await page.presses(`button[data-key=${letter}]`);
      await page.presses("button[data-key=enter]");
      const answered = `document.querySelectorAll(".letter:is(.exact,.close,.missing)").length === 5`;
      await page.holds(answered);
      await page.open("/sverdle");
      await page.holds(answered);
    },
  },
  qwik: {
    create: framework("qwik", "ts"),
    async look(page) {
      await page.open("/");
      await page.sees("So fantastic to have you here");
      await page.sees("70");
      await page.clicks("button", "+");
      await page.sees("71");
      // An action of the server, which refuses forms of another origin.
      await page.open("/demo/todolist/");
      await page.fills("input[name=text]", "water the plants");
      await page.clicks("button", "Add item");
      await page.sees("water the plants");
    },
  },
  docusaurus: {
    create: framework("docusaurus", "ts", [], ["--typescript"]),
    async look(page) {
      await page.open("/");
      await page.sees("Dinosaurs are cool");
      await page.clicks("link", /Docusaurus Tutorial/);
      await page.sees("Tutorial Intro");
      await page.open("/docs/intro");
      await page.sees("Tutorial Intro");
    },
  },
  "tanstack-start": { create: framework("tanstack-start", "ts"), look: seesAt("/", "src/routes/index.tsx") },
  angular: {
    create: framework("angular", "ts", [], ["--style=css", "--defaults"]),
    look: seesAt("/", "Hello, angular", "Congratulations! Your app is running."),
  },
  "react-router": { create: framework("react-router", "ts"), look: showsSomething },
  nuxt: { create: framework("nuxt", "ts"), look: showsSomething },
  astro: { create: framework("astro", "ts"), look: showsSomething },
  solid: { create: framework("solid", "ts"), look: showsSomething },
  analog: { create: framework("analog", "ts", [], ["--skipTailwind"]), look: showsSomething },
  waku: { create: framework("waku", "ts"), look: showsSomething },
  vike: { create: framework("vike", "ts", [], ["--react"]), look: showsSomething },
  vinext: { create: framework("next", "ts", ["--variant", "vinext"]), look: showsSomething },
  hono: { create: framework("hono", "ts"), look: seesAt("/", "Hello Hono!") },
  "create-hono": { create: hono("cloudflare-workers"), look: seesAt("/", "Hello Hono!") },
  "create-hono-vite": { create: hono("cloudflare-workers+vite"), look: seesAt("/", "Hello!") },
  "create-hono-x-basic": { create: hono("x-basic"), look: seesAt("/", "Hello, Hono!") },
  vite: viteSite("vite", "vanilla-ts"),
  "vite-react": viteSite("vite-react", "react-ts"),
  "vite-preact": viteSite("vite-preact", "preact-ts"),
  "vite-vue": viteSite("vite-vue", "vue-ts"),
  "vite-svelte": viteSite("vite-svelte", "svelte-ts"),
  "vite-solid": viteSite("vite-solid", "solid-ts"),
  "vite-react-template": { create: template("vite-react-template"), look: clicksForName },
  "astro-blog-starter-template": {
    create: template("astro-blog-starter-template"),
    async look(page) {
      await page.open("/");
      await page.holds(`document.querySelector("h1") !== null`);
      await page.open("/blog/first-post/");
      await page.sees("Lorem ipsum");
      await page.open("/about");
      await page.holds(`document.title !== "" && document.querySelector("article") !== null`);
    },
  },
  "hello-world-do-template": {
    create: template("hello-world-do-template"),
    look: seesAt("/", "Hello, World!"),
  },
  "d1-template": {
    create: template("d1-template"),
    provide: aDatabase("d1-template-database", "wrangler.json"),
    look: seesAt("/", "Successfully connected d1-template to D1", "Kristian"),
  },
  "chanfana-openapi-template": {
    create: template("chanfana-openapi-template"),
    provide: aDatabase("openapi-template-db", "wrangler.jsonc"),
    async look(page) {
      await page.open("/tasks");
      await page.sees('"result":[]');
      const task = { name: "Plants", slug: "plants", description: "Water them", completed: false };
      const body = JSON.stringify({ ...task, due_date: "2026-12-24T00:00:00Z" });
      const headers = '{ "content-type": "application/json" }';
      await page.holds(`fetch("/tasks", { method: "POST", headers: ${headers}, body: ${JSON.stringify(body)} })
        .then(({ status }) => status === 201)`);
      await page.open("/tasks?search=Plants");
      await page.sees("Water them");
    },
  },
  "durable-chat-template": {
    create: template("durable-chat-template"),
    look: looksAtChat,
    isSecure: true,
  },
  "workflows-starter-template": { create: template("workflows-starter-template"), look: looksAtSteps },
  "to-do-list-kv-template": {
    create: template("to-do-list-kv-template"),
    async provide(wrangler, folder, { ready }) {
      const made = await wrangler.run("kv", "namespace", "create", `to-do ${Date.now()}`);
      const id = /[0-9a-f]{32}/.exec(made.replace(ready.account_id, ""))![0];
      const config = join(folder, "wrangler.jsonc");
      await writeFile(config, readFileSync(config, "utf8").replace(/"id": "[0-9a-f]{32}"/, `"id": "${id}"`));
    },
    async look(page) {
      await page.open("/my-list");
      for (const todo of ["water the plants", "read a book"]) {
        await page.fills("input[name=text]", todo);
        await page.clicks("button", "Add");
        await page.sees(todo);
      }
      await page.open("/my-list");
      await page.sees("water the plants");
      await page.sees("read a book");
    },
  },
};
