import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { debian, environmentOf, npm } from "../../clients/programs/packages.ts";

const seeTimeoutMs = 20_000;

/** The part of playwright-core that this proof calls, which is fetched when the proof runs. */
interface Driver {
  chromium: {
    launch(options: { executablePath: string; args: string[]; env: NodeJS.ProcessEnv }): Promise<Chromium>;
  };
}
interface Chromium {
  version(): string;
  newPage(): Promise<Tab>;
  close(): Promise<void>;
}
interface Tab {
  on(event: "console", listener: (message: ConsoleMessage) => void): void;
  on(event: "pageerror", listener: (error: Error) => void): void;
  goto(url: string, options: { timeout: number }): Promise<{ status(): number } | null>;
  url(): string;
  title(): Promise<string>;
  evaluate(expression: string): Promise<unknown>;
  waitForFunction(expression: string, argument: undefined, options: { timeout: number }): Promise<unknown>;
  getByRole(role: string, options: { name: string | RegExp }): Locator;
  locator(selector: string): Locator;
  close(): Promise<void>;
}
interface Locator {
  first(): Locator;
  click(options: { timeout: number }): Promise<void>;
  fill(value: string, options: { timeout: number }): Promise<void>;
}
interface ConsoleMessage {
  type(): string;
  text(): string;
  location(): { url: string };
}

/** A tab on one project's host. Every method rejects within 20 s with what the page shows instead. */
export interface Page {
  /** Navigates, and rejects unless the answer has this status. */
  open(path: string, status?: number): Promise<void>;
  /** Waits until the visible text of the page contains this, white space counted as one space. */
  sees(text: string): Promise<void>;
  /** Waits until an expression in the page is true. */
  holds(expression: string): Promise<void>;
  /** Clicks the first button or link of this accessible name. */
  clicks(role: "button" | "link", name: string | RegExp): Promise<void>;
  /** Clicks the first element of a CSS selector. */
  presses(selector: string): Promise<void>;
  fills(selector: string, value: string): Promise<void>;
  /** The visible text. */
  text(): Promise<string>;
}

/** The result of a visit: the title, the texts that were waited for, and errors of the page's console. */
export interface Seen {
  title: string;
  texts: string[];
  errors: string[];
}
export interface Browser {
  version: string;
  /** Visits `origin`; rejects with the first thing that was not as expected. */
  visit(origin: string, look: (page: Page) => Promise<void>): Promise<Seen>;
  close(): Promise<void>;
}

/** Chromium: CHROMIUM, the one on PATH, or Debian's, unpacked in the cache; or why there is none. */
export async function startBrowser(): Promise<Browser | { missing: string }> {
  const found = findChromium();
  if ("missing" in found) return { missing: `Chromium: ${found.missing}` };
  const playwright = npm("playwright-core@1.65.1");
  if ("missing" in playwright) return { missing: `playwright-core: ${playwright.missing}` };
  const load = createRequire(import.meta.url);
  const { chromium } = load(join(playwright.folder, "node_modules/playwright-core")) as Driver;
  const running = await chromium
    .launch({
      executablePath: found.path,
      // Only the platform is reachable: a starter that needs another host is seen as such, and at once.
      args: [
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE *.localhost, EXCLUDE localhost",
        "--ignore-certificate-errors", // the platform's own authority
      ],
      env: { ...process.env, ...found.env },
    })
    .catch((error: Error) => error);
  if (running instanceof Error)
    return { missing: `Chromium does not start: ${running.message.split("\n")[0]!}` };
  return {
    version: running.version(),
    async visit(origin, look) {
      const tab = await running.newPage();
      try {
        return await visit(tab, origin, look);
      } finally {
        await tab.close();
      }
    },
    close: async () => running.close(),
  };
}

function findChromium(): { path: string; env: Record<string, string> } | { missing: string } {
  const named = process.env["CHROMIUM"];
  if (named !== undefined) return { path: named, env: {} };
  const installed = (process.env["PATH"] ?? "")
    .split(delimiter)
    .flatMap((folder) => ["chromium", "chromium-browser", "google-chrome"].map((name) => join(folder, name)))
    .find((path) => existsSync(path));
  if (installed !== undefined) return { path: installed, env: {} };
  const unpacked = debian("chromium");
  if ("missing" in unpacked) return unpacked;
  const libraries = environmentOf(unpacked.folder)["LD_LIBRARY_PATH"]!;
  return {
    path: join(unpacked.folder, "usr/lib/chromium/chromium"),
    // The sound library's own libraries lie one folder deeper.
    env: { LD_LIBRARY_PATH: `${libraries}:${libraries.replaceAll(":", "/pulseaudio:")}/pulseaudio` },
  };
}

async function visit(tab: Tab, origin: string, look: (page: Page) => Promise<void>): Promise<Seen> {
  const texts: string[] = [];
  let errors: { url: string; text: string }[] = [];
  tab.on("console", (message) => {
    const { url } = message.location();
    // Chromium asks for the icon by itself, and fonts of other hosts are no concern of the platform.
    const isOurs = (url === "" || url.startsWith(`${origin}/`)) && !url.endsWith("/favicon.ico");
    if (message.type() === "error" && isOurs) errors.push({ url, text: message.text() });
  });
  tab.on("pageerror", (error) => errors.push({ url: "", text: error.message }));
  const text = async (): Promise<string> =>
    // oxlint-disable-next-line typescript/no-base-to-string
    String(await tab.evaluate(`(document.body?.innerText ?? "").replace(/\\s+/g, " ").trim()`));
  /** An error names the failure and the text that the page shows instead. */
  const orShown = async (wanted: string, action: Promise<unknown>): Promise<void> => {
    try {
      await action;
    } catch (error) {
      const shown = await text().catch(() => "");
      const lines = errors.map((each) => each.text).join("; ");
      throw new Error(
        `not done: ${wanted}; the page ${tab.url()} shows: ${shown.slice(0, 500)}${lines && `; its console: ${lines}`}`,
        { cause: error },
      );
    }
  };
  const timeout = { timeout: seeTimeoutMs };
  const holds = async (expression: string): Promise<void> =>
    orShown(`see that ${expression}`, tab.waitForFunction(expression, undefined, timeout));
  const page: Page = {
    async open(path, status = 200) {
      const answer = await tab.goto(`${origin}${path}`, timeout);
      if (answer !== null && answer.status() !== status)
        throw new Error(
          `${path} answers ${answer.status()} instead of ${status}: ${(await text()).slice(0, 500)}`,
        );
      if (status >= 400) errors = errors.filter(({ url }) => url !== `${origin}${path}`);
    },
    async sees(wanted) {
      await holds(
        `(document.body?.innerText ?? "").replace(/\\s+/g, " ").includes(${JSON.stringify(wanted)})`,
      );
      texts.push(wanted);
    },
    holds,
    clicks: async (role, name) =>
      orShown(`click the ${role} ${String(name)}`, tab.getByRole(role, { name }).first().click(timeout)),
    presses: async (selector) => orShown(`click ${selector}`, tab.locator(selector).first().click(timeout)),
    fills: async (selector, value) =>
      orShown(`fill ${selector}`, tab.locator(selector).first().fill(value, timeout)),
    text,
  };
  await look(page);
  return { title: await tab.title(), texts, errors: errors.map((each) => `${each.text} ${each.url}`.trim()) };
}
