/** A minimal name server on Node: dgram, and dns-packet to read and write each message. Zone as JSON in argv[2]. */
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { decode, encode, type Answer } from "dns-packet";

const { zone, records } = JSON.parse(readFileSync(process.argv[2]!, "utf8")) as {
  zone: string;
  records: { name: string; type: string; data: unknown }[];
};
const sets = Map.groupBy(records, ({ name, type }) => `${name} ${type}`);
const names = new Set(records.map(({ name }) => name));
const soa = {
  name: zone,
  type: "SOA",
  ttl: 1800,
  data: { mname: `ns.${zone}`, rname: `dns.${zone}`, serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 1 },
};
const nameError = 3;

const at = (owner: string, name: string, type: string): Answer[] =>
  (sets.get(`${owner} ${type}`) ?? []).map(({ data }) => ({ name, type, ttl: 300, data }) as Answer);

const socket = createSocket("udp4");
socket.on("message", (message, { port, address }) => {
  const query = decode(message);
  const { name, type } = query.questions![0]!;
  const owner = names.has(name) ? name : `*${name.slice(name.indexOf("."))}`;
  const answers = at(owner, name, type);
  const [alias] = answers.length === 0 ? at(owner, name, "CNAME") : [];
  if (alias !== undefined) {
    const target = (alias as { data: string }).data;
    answers.push(alias, ...at(target, target, type));
  }
  const answer = encode({
    type: "response",
    id: query.id!,
    flags: 0x0400 | (names.has(owner) ? 0 : nameError),
    questions: query.questions!,
    answers,
    authorities: answers.length === 0 ? [soa as Answer] : [],
    additionals: [{ type: "OPT", name: ".", udpPayloadSize: 1232, flags: 0, options: [] } as never],
  });
  socket.send(answer, port, address);
});
socket.bind(0, "127.0.0.1", () => console.log(socket.address().port));
