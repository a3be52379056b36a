import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { pipeline } from "node:stream/promises";
import { text } from "node:stream/consumers";
import { bitPng } from "../test/images/fixtures.ts";
import { benchToken, startPeer } from "./lib/child.ts";
import { atMost, cpuMicroseconds, median, pairedRatio, residentMegabytes, type Goal } from "./lib/measure.ts";
import { readFileSync } from "node:fs";
import { imageProcess, timed } from "./images-lib.ts";
import type { Section, Stage } from "./images-cold.ts";

/** Compares uploads of 100 MB with a minimal server that hashes and writes them; and uploads refused by their header. */
const megabytes = 100;

async function send(url: string, jpeg: Buffer, isForm: boolean): Promise<void> {
  const boundary = "----bench";
  const head = Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\nContent-Type: image/jpeg\r\n\r\n`,
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  const fileBytes = megabytes * 1024 * 1024;
  const sent = request(url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${benchToken}`,
      "content-type": isForm ? `multipart/form-data; boundary=${boundary}` : "image/jpeg",
      "content-length": fileBytes + (isForm ? head.length + tail.length : 0),
    },
  });
  function* body(): Iterable<Buffer> {
    if (isForm) yield head;
    yield jpeg;
    const filler = Buffer.alloc(64 * 1024, 7);
    for (let left = fileBytes - jpeg.length; left > 0; left -= filler.length)
      yield filler.subarray(0, Math.min(left, filler.length));
    if (isForm) yield tail;
  }
  const answered = once(sent, "response") as Promise<[IncomingMessage]>;
  await pipeline(body(), sent);
  const [response] = await answered;
  const answer = await text(response);
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${answer}`);
}

export async function uploadSection({ pid, ready, path }: Stage): Promise<Section> {
  const jpeg = readFileSync(path);
  const bare = await startPeer("bare-upload.ts");
  const url = `${ready.api}/accounts/${ready.account_id}/images/v1`;
  const sides = {
    selvedge: { pid, send: () => send(url, jpeg, true) },
    bare: { pid: bare.pid, send: () => send(`http://127.0.0.1:${bare.port}/`, jpeg, false) },
  };
  await send(url, jpeg, true);
  const before = residentMegabytes(pid);
  let most = before;
  const sampler = setInterval(() => (most = Math.max(most, residentMegabytes(pid))), 20);
  const cpu: Record<string, number[]> = { selvedge: [], bare: [] };
  for (let round = 0; round < 5; round++)
    for (const [name, side] of Object.entries(sides)) {
      const used = cpuMicroseconds(side.pid);
      await side.send();
      cpu[name]!.push((cpuMicroseconds(side.pid) - used) / 1000);
    }
  clearInterval(sampler);
  const goals: Goal[] = [
    atMost(
      `E13 CPU of a form of ${megabytes} MB / the raw body hashed and written`,
      pairedRatio(cpu["selvedge"]!, cpu["bare"]!),
      1.4,
    ),
    atMost(`E13 memory that a form of ${megabytes} MB adds, MB`, most - before, 60),
  ];
  const rows: Section["rows"] = [
    [`${megabytes} MB form, Selvedge, CPU ms`, median(cpu["selvedge"]!)],
    [`${megabytes} MB raw body, node:http → SHA-256 → file, CPU ms`, median(cpu["bare"]!)],
    ["memory before, MB", before],
    ["the most while uploads ran, MB", most],
  ];
  const bomb = bitPng(50_000, 50_000, true);
  const refused = await timed(20, 1, async () => {
    const form = new FormData();
    form.set("file", new File([new Uint8Array(bomb)], "bomb.png"));
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${benchToken}` },
      body: form,
    });
    const { errors } = (await response.json()) as { errors: { code: number }[] };
    if (errors[0]?.code !== 5401) throw new Error(JSON.stringify(errors));
  });
  rows.push([
    `a PNG of 50,000 × 50,000 in ${bomb.length} bytes refused, worst of 20, ms`,
    refused.each.at(-1)!,
  ]);
  goals.push(atMost("E14 refusing a bomb, the worst of 20, ms", refused.each.at(-1)!, 100));
  goals.push(
    atMost("E14 image processes that a bomb has started", imageProcess(pid) === undefined ? 0 : 1, 0),
  );
  await bare.stop();
  return { headings: ["", "measured"], rows, goals };
}
