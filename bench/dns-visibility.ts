import { createSocket } from "node:dgram";
import { once } from "node:events";
import { encode } from "dns-packet";
import { api, benchToken, startSelvedge } from "./lib/child.ts";
import { atMost, printTable, reported, type Goal } from "./lib/measure.ts";

const zone = "large.example";
const recordsCount = 10_000;
const changes = 500;

/** Measures the time from an API change until DNS answers show it, in a zone of 10,000 records. */
export async function measureVisibility(): Promise<Goal[]> {
  const selvedge = await startSelvedge();
  const { ready } = selvedge;
  const { id } = await api<{ id: string }>(ready, "POST", "/zones", { name: zone });
  const form = new FormData();
  form.append(
    "file",
    Array.from({ length: recordsCount }, (_, index) => `n${index} 60 IN A 192.0.2.1\n`).join(""),
  );
  const headers = { authorization: `Bearer ${benchToken}` };
  await fetch(`${ready.api}/zones/${id}/dns_records/import`, { method: "POST", headers, body: form });
  const list = `/zones/${id}/dns_records?per_page=${changes}&name.startswith=n1`;
  const records = await api<{ id: string; name: string }[]>(ready, "GET", list);

  const socket = createSocket("udp4");
  socket.connect(Number(ready.dns.split(":").at(-1)), "127.0.0.1");
  await once(socket, "connect");
  const isSeen = async (name: string, address: string): Promise<boolean> => {
    socket.send(encode({ type: "query", id: 1, questions: [{ name, type: "A" }] }));
    const [answer] = (await once(socket, "message")) as [Buffer];
    return answer.subarray(-4).join(".") === address;
  };
  const afterAnswerMs: number[] = [];
  const afterCallMs: number[] = [];
  for (const [index, record] of records.entries()) {
    const address = `198.51.100.${index % 250}`;
    const called = performance.now();
    await api(ready, "PATCH", `/zones/${id}/dns_records/${record.id}`, { content: address });
    const answered = performance.now();
    while (!(await isSeen(record.name, address)));
    const seen = performance.now();
    afterAnswerMs.push(seen - answered);
    afterCallMs.push(seen - called);
  }
  socket.close();
  await selvedge.stop();
  const at = (values: readonly number[], share: number): number =>
    values.toSorted((a, b) => a - b)[Math.floor(values.length * share)]!;
  printTable(
    [`${records.length} changes among ${recordsCount} records`, "p50 ms", "p99 ms", "longest ms"],
    [
      [
        "seen after the API's answer",
        at(afterAnswerMs, 0.5),
        at(afterAnswerMs, 0.99),
        Math.max(...afterAnswerMs),
      ],
      ["seen after the call began", at(afterCallMs, 0.5), at(afterCallMs, 0.99), Math.max(...afterCallMs)],
    ],
  );
  return [
    atMost("p99 until a change is seen, from the API's answer, ms", at(afterAnswerMs, 0.99), 50),
    reported("p99 until a change is seen, from the beginning of the call, ms", at(afterCallMs, 0.99)),
  ];
}
