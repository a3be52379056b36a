import { createSocket } from "node:dgram";
import { once } from "node:events";
import { networkInterfaces } from "node:os";
import { decode, encode } from "dns-packet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadSystemCalls } from "../../src/dns/name-server/udp/system-calls.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask, dnsPort } from "./ask.ts";
import { DnsStream } from "./stream.ts";

interface Settings {
  dnsListen?: string;
  dnsThreads?: number;
  dnsUdp?: "batched";
}
const canBatch = (await loadSystemCalls()) !== undefined;
const hasIPv6 = Object.values(networkInterfaces()).some((list) =>
  list?.some(({ address }) => address === "::1"),
);
const isPossible = ([, { dnsListen = "" }]: [string, Settings]): boolean => hasIPv6 || dnsListen === "";
const kinds: [what: string, settings: Settings][] = [
  ["the main thread", {}],
  ["three threads", { dnsThreads: 3 }],
  ["an IPv6 address", { dnsListen: "[::1]:0" }],
  ["both families", { dnsListen: "[::]:0" }],
];
if (canBatch)
  kinds.push(
    ["the main thread in batches", { dnsUdp: "batched" }],
    ["three threads in batches", { dnsUdp: "batched", dnsThreads: 3 }],
    ["an IPv6 address in batches", { dnsUdp: "batched", dnsListen: "[::1]:0" }],
    ["both families in batches", { dnsUdp: "batched", dnsListen: "[::]:0" }],
  );

describe.each(kinds.filter(isPossible))("on %s", (_what, settings) => {
  const zone = "threads.example";
  const { dnsListen = "" } = settings;
  const addresses =
    dnsListen === "[::1]:0" ? ["::1"] : dnsListen === "" ? ["127.0.0.1"] : ["::1", "127.0.0.1"];
  let server: TestServer;
  let zone_id: string;
  beforeAll(async () => {
    server = await startTestServer(settings);
    const { zones, dns } = server.client;
    ({ id: zone_id } = await zones.create({ account: { id: server.ready.account_id }, name: zone }));
    const file = Array.from({ length: 200 }, (_, index) => `n${index} 60 IN A 192.0.2.${index}\n`).join("");
    await dns.records.import({ zone_id, file });
  });
  afterAll(() => server.close(1000));

  /** Queries all names at once from one port, and repeats lost queries. */
  async function askAll(address: string): Promise<Map<string, string>> {
    const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
    socket.connect(dnsPort(server), address);
    await once(socket, "connect");
    const answers = new Map<string, string>();
    const done = Promise.withResolvers<void>();
    socket.on("message", (message) => {
      const { questions, answers: found } = decode(message);
      answers.set(questions![0]!.name, (found![0] as { data: string }).data);
      if (answers.size === 200) done.resolve();
    });
    const names = Array.from({ length: 200 }, (_, index) => `n${index}.${zone}`);
    const send = (): void => {
      for (const name of names)
        if (!answers.has(name)) socket.send(encode({ type: "query", questions: [{ name, type: "A" }] }));
    };
    send();
    const again = setInterval(send, 1000);
    await done.promise;
    clearInterval(again);
    socket.close();
    return answers;
  }

  it.each(addresses)("every client at %s gets responses, over UDP and TCP", async (address) => {
    const clients = await Promise.all(Array.from({ length: 6 }, () => askAll(address)));
    for (const answers of clients)
      for (let index = 0; index < 200; index++)
        expect(answers.get(`n${index}.${zone}`)).toBe(`192.0.2.${index}`);
    const stream = await DnsStream.open(dnsPort(server), address);
    const question = encode({ type: "query", questions: [{ name: `n7.${zone}`, type: "A" }] });
    expect(decode(await stream.ask(question)).answers).toHaveLength(1);
    stream.close();
  });

  if (dnsListen === "")
    it("every thread has a change when the API has answered", async () => {
      const { records } = server.client.dns;
      for (let round = 0; round < 5; round++) {
        const content = `198.51.100.${round}`;
        const made = await records.create({ zone_id, type: "A", name: "new", content, ttl: 60 });
        const responses = await Promise.all(
          Array.from({ length: 12 }, () => ask(server, `new.${zone}`, "A")),
        );
        for (const { answers } of responses) expect(answers).toEqual([`new.${zone} 60 A ${content}`]);
        await records.delete(made.id, { zone_id });
      }
    });
});
