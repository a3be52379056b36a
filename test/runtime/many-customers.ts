import { cellPids, residentMebibytes } from "./cell-processes.ts";
import { startHosting, type Hosting } from "./platform.ts";

export interface ManyCustomers {
  deployed: number;
  deploySeconds: number;
  requests: number;
  failed: number;
  /** Answers that belonged to another customer. */
  mixedUp: number;
  requestMs: { p50: number; p99: number; max: number };
  /** Highest memory of all cells together, and of one cell. */
  cellsMebibytesMax: number;
  cellMebibytesMax: number;
  frontMebibytesMax: number;
}

/** About the size of a typical customer's script: a few routes and a page. */
export const customerCode = (name: string): string => `
const routes = new Map([["/", home], ["/about", about]]);
const page = (title, body) => "<!doctype html><title>" + title + "</title><body>" + body + "</body>";
function home() { return new Response(page("${name}", "<h1>Welcome to ${name}</h1>"), { headers: { "content-type": "text/html" } }); }
function about(request, env) { return Response.json({ name: "${name}", text: env.TEXT, url: request.url }); }
export default {
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    const route = routes.get(pathname.slice("/${name}".length) || "/");
    return route === undefined ? new Response("not found", { status: 404 }) : route(request, env, ctx);
  },
};`;

export const pathDispatcher = `export default {
  fetch(request, env) {
    const [, name] = new URL(request.url).pathname.split("/");
    return env.NS.get(name, {}, { limits: { cpuMs: 50, subRequests: 10 } }).fetch(request);
  },
};`;

const nameOf = (index: number): string => `customer-${index}`;

/** Deploys customers over the API and calls them in random order, with a memory budget for each cell. */
export async function manyCustomers(
  count: number,
  requests: number,
  cellMebibytes: number,
  say: (line: string) => void = () => {},
): Promise<ManyCustomers> {
  const hosting = await startHosting({ cellMemoryMegabytes: cellMebibytes });
  let [cellsMax, cellMax, frontMax] = [0, 0, 0];
  const watch = setInterval(() => {
    const cells = cellPids(process.pid).map(residentMebibytes);
    cellsMax = Math.max(
      cellsMax,
      cells.reduce((sum, each) => sum + each, 0),
    );
    cellMax = Math.max(cellMax, ...cells);
    frontMax = Math.max(frontMax, process.memoryUsage().rss / 1024 / 1024);
  }, 50);
  try {
    const deploySeconds = await deployAll(hosting, count, say);
    const outcome = { failed: 0, mixedUp: 0 };
    const tookMs: number[] = [];
    let asked = 0;
    await inParallel(4, async () => {
      if (asked++ >= requests) return false;
      if (asked % 1000 === 0) say(`${asked} requests, cells ${Math.round(cellsMax)} MiB at most`);
      const name = nameOf(Math.floor(Math.random() * count));
      const started = performance.now();
      const { status, body } = await hosting.ask("dispatcher", `/${name}/about`);
      tookMs.push(performance.now() - started);
      if (status !== 200) outcome.failed++;
      else if ((JSON.parse(body) as { name: string }).name !== name) outcome.mixedUp++;
      return true;
    });
    tookMs.sort((a, b) => a - b);
    const at = (share: number): number => round(tookMs[Math.floor(tookMs.length * share)]!);
    return {
      deployed: count,
      deploySeconds,
      requests,
      ...outcome,
      requestMs: { p50: at(0.5), p99: at(0.99), max: round(tookMs.at(-1)!) },
      cellsMebibytesMax: Math.round(cellsMax),
      cellMebibytesMax: Math.round(cellMax),
      frontMebibytesMax: Math.round(frontMax),
    };
  } finally {
    clearInterval(watch);
    await hosting.close(0);
  }
}

async function deployAll(hosting: Hosting, count: number, say: (line: string) => void): Promise<number> {
  const started = performance.now();
  await hosting.createNamespace("many");
  await hosting.deploy("dispatcher", {
    code: pathDispatcher,
    bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "many" }],
  });
  let next = 0;
  await inParallel(4, async () => {
    const index = next++;
    if (index >= count) return false;
    if (index % 1000 === 999) say(`${index + 1} deployed`);
    const name = nameOf(index);
    await hosting.deployCustomer("many", name, {
      code: customerCode(name),
      bindings: [{ type: "plain_text", name: "TEXT", text: `of ${name}` }],
    });
    return true;
  });
  return round((performance.now() - started) / 1000);
}

async function inParallel(clients: number, work: () => Promise<boolean>): Promise<void> {
  const client = async (): Promise<void> => {
    while (await work());
  };
  await Promise.all(Array.from({ length: clients }, client));
}

const round = (value: number): number => Math.round(value * 10) / 10;
