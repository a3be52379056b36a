import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { startSelvedge, type PlatformSettings, type Selvedge } from "../../src/testkit/start-selvedge.ts";

const programs = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/** The browser of this machine; undefined without one, and the tests are skipped. */
export const browserPath = programs.find((path) => existsSync(path));

/** A platform, and a browser that shows its console. */
export interface OpenConsole extends AsyncDisposable {
  platform: Selvedge;
  browser: Browser;
  /** Origins beside the console's own that pages have asked. */
  foreign: string[];
  /** Errors in pages: exceptions, and violations of the policy. */
  faults: string[];
  /** Reads of pages that the server refused: the page could have known, or should not have asked. */
  refused: string[];
  /** A window, signed in with a token unless it is undefined. */
  open: (path: string, options?: WindowOptions) => Promise<Page>;
  /** A window with a path of the owner's account, which shows its data. */
  opened: (path: string) => Promise<Page>;
  /** Ends the platform, calls `meanwhile`, and starts it at the same addresses, with changed settings. */
  restart: (changes: PlatformSettings, meanwhile: () => Promise<void>) => Promise<void>;
  /** A call of the management API with the owner's token. */
  call: <T>(method: string, path: string, body?: unknown) => Promise<T>;
}

interface WindowOptions {
  token?: string | undefined;
  isSignedIn?: boolean;
  width?: number;
  height?: number;
  theme?: "light" | "dark";
}

/** Starts an ephemeral platform and a browser. */
export async function openConsole(settings: PlatformSettings = {}): Promise<OpenConsole> {
  const start = async (changes: PlatformSettings = {}): Promise<Selvedge> =>
    startSelvedge({ settings: { apiRateLimit: 0, metricsListen: "127.0.0.1:0", ...settings, ...changes } });
  let platform = await start();
  const browser = await chromium.launch({ executablePath: browserPath!, args: ["--no-sandbox"] });
  const own = new URL(platform.urls.dashboard).origin;
  const edge = new URL(platform.urls.edge).origin;
  const foreign: string[] = [];
  const faults: string[] = [];
  const refused: string[] = [];
  const sessions = new Map<string, Awaited<ReturnType<BrowserContext["cookies"]>>>();

  const cookiesOf = async (token: string) => {
    const known = sessions.get(token);
    if (known !== undefined) return known;
    const response = await fetch(`${platform.urls.dashboard}session`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-selvedge-dashboard": "1" },
      body: JSON.stringify({ token, plain: true }),
    });
    const value = /selvedge_session=([^;]+)/.exec(response.headers.get("set-cookie") ?? "")?.[1];
    if (value === undefined) throw new Error(`sign-in failed: ${await response.text()}`);
    const cookies = [
      {
        name: "selvedge_session",
        value,
        domain: new URL(own).hostname,
        path: "/",
        httpOnly: true,
        secure: false,
        sameSite: "Strict" as const,
        expires: -1,
      },
    ];
    sessions.set(token, cookies);
    return cookies;
  };

  const open: OpenConsole["open"] = async (
    path,
    { token = platform.token, isSignedIn = true, width = 1360, height = 860, theme = "light" } = {},
  ) => {
    const context = await browser.newContext({
      viewport: { width, height },
      colorScheme: theme,
      reducedMotion: "reduce",
    });
    if (isSignedIn) await context.addCookies(await cookiesOf(token));
    const page = await context.newPage();
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      // Pictures come from the edge of the same installation.
      if (origin !== own && origin !== edge && protocol.startsWith("http")) foreign.push(request.url());
    });
    page.on("response", (response) => {
      const request = response.request();
      if (response.status() >= 400 && request.method() === "GET")
        refused.push(`${path}: ${response.status()} of ${new URL(response.url()).pathname}`);
    });
    page.on("pageerror", (error) => faults.push(`${path}: ${error.stack ?? error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error" && !/status of (4\d\d|0)|ERR_/.test(message.text()))
        faults.push(`${path}: ${message.text()}`);
    });
    await page.goto(`${own}/dashboard${path}`);
    return page;
  };

  return {
    get platform() {
      return platform;
    },
    browser,
    foreign,
    faults,
    refused,
    open,
    async opened(path) {
      const page = await open(`/${platform.accountId}${path}`);
      await settled(page);
      return page;
    },
    async restart(changes, meanwhile) {
      const { token: apiToken, urls } = platform;
      const at = (url: string | undefined): string => new URL(url!).host;
      await platform.close();
      await meanwhile();
      platform = await start({
        ...changes,
        apiToken,
        apiListen: at(urls.api),
        edgeListen: at(urls.edge),
        edgeTlsListen: at(urls.edgeTls),
      });
    },
    async call<T>(method: string, path: string, body?: unknown) {
      const response = await fetch(`${platform.urls.api}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${platform.token}`,
          ...(!(body instanceof FormData) && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body) }),
      });
      const { success, result, errors } = (await response.json()) as {
        success: boolean;
        result: T;
        errors: unknown;
      };
      if (!success) throw new Error(`${method} ${path}: ${JSON.stringify(errors)}`);
      return result;
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
      await platform.close();
    },
  };
}

/** Presses the button with this name. */
export const press = async (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();

/** Resolves when a page shows its data, and waits for nothing more. */
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(() => {
    const view = globalThis as unknown as {
      document: { querySelector(selector: string): object | null };
      quiet?: number;
    };
    const isWaiting = view.document.querySelector(".bars, .bar, [aria-busy=true]") !== null;
    const isThere = view.document.querySelector("h1, .empty, .failure") !== null;
    // Several frames in a row, because data that arrived may ask for more.
    view.quiet = isThere && !isWaiting ? (view.quiet ?? 0) + 1 : 0;
    return view.quiet > 12;
  });
}
