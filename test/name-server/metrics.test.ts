import { encode } from "dns-packet";
import { expect, it } from "vitest";
import { startTestServer } from "../helpers/server.ts";
import { ask, dnsPort } from "./ask.ts";
import { DnsStream } from "./stream.ts";

it.each([0, 2])("responses are counted by code, summed over %i threads", async (dnsThreads) => {
  const server = await startTestServer({ metricsListen: "127.0.0.1:0", dnsThreads });
  await server.client.zones.create({ account: { id: server.ready.account_id }, name: "counted.example" });
  for (let count = 0; count < 5; count++) await ask(server, "counted.example", "SOA");
  for (let count = 0; count < 3; count++) await ask(server, "none.counted.example", "A");
  const stream = await DnsStream.open(dnsPort(server));
  await stream.ask(encode({ type: "query", questions: [{ name: "elsewhere.test", type: "A" }] }));
  stream.close();
  const text = await (await fetch(server.ready.metrics!)).text();
  expect(text.match(/^selvedge_dns_answers_total.*$/gm)).toEqual([
    'selvedge_dns_answers_total{transport="udp",code="0"} 5',
    'selvedge_dns_answers_total{transport="udp",code="3"} 3',
    'selvedge_dns_answers_total{transport="tcp",code="5"} 1',
    'selvedge_dns_answers_total{transport="udp",code=""} 0',
  ]);
  await server.close(1000);
});
