import { api, benchToken, startPeer, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import { atMost, median, pairedRatio, printGoals, printTable, reported, type Goal } from "./lib/measure.ts";
import { treeCpuMicroseconds } from "./lib/tree.ts";

/*
 * Measures CPU time per hop of a request from the gateway through a dispatcher to a customer's script, compared with
 * bare workerd with the same isolates, and with miniflare. Also: first-call latency, and two cells against one.
 */
/** V8 finishes compiling after about 18,000 requests; a round is 2,000. */
const warmUpRounds = 10;
const rounds = 15;
const count = 2000;
const connections = 16;
const customer = `export default { fetch() { return new Response("hello"); } };`;
const dispatcher = `export default { async fetch(request, env) { new URL(request.url); try { return await env.NS.get("hello").fetch(request); } catch { return new Response("", { status: 404 }); } } };`;
const coldCode = `const text = "NAME"; export default { fetch(request, env) { return new Response(text + env.TEXT); } };`;
const coldRounds = 3;
const coldCount = 200;
const coldWarmUp = 10;

const bare = await startPeer("bare-dispatch.ts", coldCode);
const miniflare = await startPeer("miniflare-dispatch.ts");
const one = await startHost(1);

interface Side {
  url: string;
  path: string;
  host: string;
  pid: number;
}
const bareSide = (path: string, { port, pid }: typeof bare = bare): Side => ({
  url: `http://127.0.0.1:${port}`,
  path,
  host: "bare",
  pid,
});
const sides: Record<string, Side> = {
  "Selvedge: gateway → dispatcher → customer": one.side("dispatcher"),
  "bare: proxy → dispatcher → customer": bareSide("/dispatch"),
  "miniflare: router → customer": {
    url: `http://127.0.0.1:${miniflare.port}`,
    path: "/",
    host: "bare",
    pid: miniflare.pid,
  },
  "Selvedge: gateway → script": one.side("alone"),
  "bare: proxy → script": bareSide("/script"),
  "bare: proxy → workerd": bareSide("/entry"),
};
const cpu: Record<string, number[]> = {};
const gateway: Record<string, number[]> = {};
const perSecond: Record<string, number[]> = {};
for (const name of Object.keys(sides)) [cpu[name], gateway[name], perSecond[name]] = [[], [], []];
for (let round = -warmUpRounds; round < rounds; round++) {
  const all = Object.entries(sides);
  // Rotates which side goes first.
  const first = (round + warmUpRounds) % all.length;
  for (const [name, { url, path, host, pid }] of [...all.slice(first), ...all.slice(0, first)]) {
    const before = treeCpuMicroseconds(pid);
    const seconds = await load(url, count, connections, () => ({ method: "GET", path, headers: { host } }));
    if (round < 0) continue; // warm-up
    const after = treeCpuMicroseconds(pid);
    gateway[name]!.push((after.own - before.own) / count);
    cpu[name]!.push((after.own + after.below - before.own - before.below) / count);
    perSecond[name]!.push(count / seconds);
  }
}
printTable(
  ["", "CPU µs each", "of it Node", "of it workerd", "per second"],
  Object.keys(sides).map((name) => [
    name,
    median(cpu[name]!),
    median(gateway[name]!),
    median(cpu[name]!.map((all, i) => all - gateway[name]![i]!)),
    median(perSecond[name]!),
  ]),
);
const [ours, bares, miniflares, oursAlone, baresAlone] = Object.keys(sides) as [
  string,
  string,
  string,
  string,
  string,
];
const goals: Goal[] = [
  atMost(
    "CPU of a dispatched request, Selvedge / bare workerd with the same hops",
    pairedRatio(cpu[ours]!, cpu[bares]!),
    1.4,
  ),
  reported(
    "CPU of a dispatched request, Selvedge / miniflare (aim: 1.5)",
    pairedRatio(cpu[ours]!, cpu[miniflares]!),
  ),
  reported("CPU of a request to one script, Selvedge / bare", pairedRatio(cpu[oursAlone]!, cpu[baresAlone]!)),
];

// First calls of scripts, one by one, alternating between the sides, in fresh processes each time.
const cold: Record<"selvedge" | "bare", number[]> = { selvedge: [], bare: [] };
for (let round = 0; round < coldRounds; round++) {
  const [ours, bares] = [
    await startHost(1, coldWarmUp + coldCount),
    await startPeer("bare-dispatch.ts", coldCode),
  ];
  for (let i = -coldWarmUp; i < coldCount; i++) {
    const name = `c${i + coldWarmUp}`;
    const [selvedgeMs, bareMs] = [
      await took({ ...ours.side("cold"), path: `/${name}` }),
      await took(bareSide(`/cold/${name}`, bares)),
    ];
    if (i < 0) continue;
    cold.selvedge.push(selvedgeMs);
    cold.bare.push(bareMs);
  }
  await ours.stop();
  await bares.stop();
}
const at = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)]!;
printTable(
  ["first call of a script, ms", "p50", "p99"],
  Object.entries(cold).map(([name, values]) => [name, at(values, 0.5), at(values, 0.99)]),
);
for (const [name, share] of Object.entries({ p50: 0.5, p99: 0.99 }))
  goals.push(
    atMost(
      `first call of a customer's script, ${name}, Selvedge / bare loader`,
      at(cold.selvedge, share) / at(cold.bare, share),
      1.5,
    ),
  );

// The same load on two cells and on one.
const two = await startHost(2);
const speed: Record<"one" | "two", number[]> = { one: [], two: [] };
for (let round = -1; round < 5; round++) {
  for (const [name, host] of Object.entries({ one, two }) as ["one" | "two", typeof one][]) {
    const { url, path, host: header } = host.side("dispatcher");
    const seconds = await load(url, count, connections * 2, () => ({
      method: "GET",
      path,
      headers: { host: header },
    }));
    if (round >= 0) speed[name].push(count / seconds);
  }
}
goals.push(reported("requests per second, two cells / one", pairedRatio(speed.two, speed.one)));
printGoals(goals);
for (const each of [two, one, miniflare, bare]) await each.stop();

async function took({ url, path, host }: Side): Promise<number> {
  const started = performance.now();
  await load(url, 1, 1, () => ({ method: "GET", path, headers: { host } }));
  return performance.now() - started;
}

/** Starts Selvedge with the benchmark's scripts, and `coldScripts` more that have had no call yet. */
async function startHost(
  cells: number,
  coldScripts = 0,
): Promise<{ side(script: string): Side; stop(): Promise<void> }> {
  const selvedge = await startSelvedge(["--cells", String(cells)]);
  const { ready } = selvedge;
  const account = `/accounts/${ready.account_id}`;
  const namespaces = `${account}/workers/dispatch/namespaces`;
  const upload = async (path: string, code: string, bindings: object[] = []): Promise<void> => {
    const form = new FormData();
    const metadata = { main_module: "index.js", compatibility_date: "2026-11-01", bindings };
    form.set("metadata", new Blob([JSON.stringify(metadata)], { type: "application/json" }));
    form.set("index.js", new File([code], "index.js", { type: "application/javascript+module" }));
    const response = await fetch(`${ready.api}${path}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${benchToken}` },
      body: form,
    });
    if (!response.ok) throw new Error(await response.text());
  };
  await api(ready, "POST", namespaces, { name: "bench" });
  await upload(`${namespaces}/bench/scripts/hello`, customer);
  for (let i = 0; i < coldScripts; i++)
    await upload(`${namespaces}/bench/scripts/c${i}`, coldCode.replaceAll("NAME", `c${i}`), [
      { type: "plain_text", name: "TEXT", text: `of c${i}` },
    ]);
  const binding = { type: "dispatch_namespace", name: "NS", namespace: "bench" };
  await upload(`${account}/workers/scripts/alone`, customer);
  await upload(`${account}/workers/scripts/dispatcher`, dispatcher, [binding]);
  await upload(
    `${account}/workers/scripts/cold`,
    `export default { fetch: (request, env) => env.NS.get(new URL(request.url).pathname.slice(1)).fetch(request) };`,
    [binding],
  );
  const { subdomain } = await api<{ subdomain: string }>(ready, "GET", `${account}/workers/subdomain`);
  return {
    side: (script) => ({
      url: ready.edge,
      path: "/",
      host: `${script}.${subdomain}.workers.localhost`,
      pid: selvedge.pid,
    }),
    stop: async () => selvedge.stop(),
  };
}
