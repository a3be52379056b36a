import { createHash } from "node:crypto";
import { api, benchToken, startPeer, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import {
  atMost,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  printTable,
  reported,
  type Goal,
} from "./lib/measure.ts";

/** CPU time of a request for a static asset that is in memory, beside plain node:http with the same bytes in memory. */
const rounds = 9;
const sizes = { "1 KB": 1024, "20 KB": 20 * 1024, "200 KB": 200 * 1024 };
const [count, connections] = [3000, 16];
const script = "bench-site";

const peer = await startPeer("static-memory.ts");
const selvedge = await startSelvedge();
const { ready } = selvedge;
const host = await deploySite();

const sides: Record<string, { url: string; pid: number; host: string }> = {
  selvedge: { url: ready.edge, pid: selvedge.pid, host },
  "node:http": { url: `http://127.0.0.1:${peer.port}`, pid: peer.pid, host: "127.0.0.1" },
};
const goals: Goal[] = [];
const rows: (string | number)[][] = [];
for (const [name, bytes] of Object.entries(sizes)) {
  const cpu: Record<string, number[]> = { selvedge: [], "node:http": [] };
  const perSecond: Record<string, number[]> = { selvedge: [], "node:http": [] };
  for (let round = -2; round < rounds; round++) {
    const order = Object.entries(sides);
    for (const [side, { url, pid, host }] of round % 2 === 0 ? order : order.toReversed()) {
      const before = cpuMicroseconds(pid);
      const path = side === "selvedge" ? `/${bytes}.txt` : `/${bytes}`;
      const seconds = await load(url, count, connections, () => ({ method: "GET", path, headers: { host } }));
      if (round < 0) continue; // warm-up
      cpu[side]!.push((cpuMicroseconds(pid) - before) / count);
      perSecond[side]!.push(count / seconds);
    }
  }
  for (const side of Object.keys(sides))
    rows.push([`${name}, ${side}`, median(perSecond[side]!), median(cpu[side]!)]);
  const ratio = pairedRatio(cpu["selvedge"]!, cpu["node:http"]!);
  const what = `CPU per cached asset of ${name}, Selvedge / node:http`;
  goals.push(name === "200 KB" ? reported(what, ratio) : atMost(what, ratio, 1.5));
}
printTable(["", "per second", "CPU µs each"], rows);
printGoals(goals);
await selvedge.stop();
await peer.stop();

/** A site of one file for each size; answers with its host. */
async function deploySite(): Promise<string> {
  const account = `/accounts/${ready.account_id}`;
  const files = Object.values(sizes).map((bytes) => {
    const content = Buffer.alloc(bytes, "x");
    return {
      path: `/${bytes}.txt`,
      content,
      hash: createHash("sha256").update(content).digest("hex").slice(0, 32),
    };
  });
  const manifest = Object.fromEntries(
    files.map(({ path, content, hash }) => [path, { hash, size: content.length }]),
  );
  const session = await api<{ jwt: string }>(
    ready,
    "POST",
    `${account}/workers/scripts/${script}/assets-upload-session`,
    { manifest },
  );
  const form = new FormData();
  for (const { hash, content } of files)
    form.append(hash, new File([content.toString("base64")], hash, { type: "text/plain; charset=utf-8" }));
  const sent = await send("POST", `${account}/workers/assets/upload?base64=true`, session.jwt, form);
  const upload = new FormData();
  upload.set("metadata", JSON.stringify({ compatibility_date: "2026-01-01", assets: { jwt: sent.jwt } }));
  await send("PUT", `${account}/workers/scripts/${script}`, benchToken, upload);
  const { subdomain } = await api<{ subdomain: string }>(ready, "GET", `${account}/workers/subdomain`);
  return `${script}.${subdomain}.workers.localhost`;
}

async function send(method: string, path: string, token: string, body: FormData): Promise<{ jwt: string }> {
  const response = await fetch(`${ready.api}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
    body,
  });
  const envelope = (await response.json()) as { success: boolean; result: { jwt: string }; errors: unknown };
  if (!envelope.success) throw new Error(JSON.stringify(envelope.errors));
  return envelope.result;
}
