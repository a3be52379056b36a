import { z } from "zod";
import { apiErrors } from "../../../control/api/errors.ts";
import { operationsFor } from "../../../control/api/operation.ts";
import { dnsRead } from "../../records/access.ts";
import { dnsErrorCodes } from "../../records/api/api-errors.ts";
import { parseRecordName } from "../../records/name.ts";
import type { NameServer } from "../name-server.ts";
import { ByteWriter } from "../wire/byte-writer.ts";
import { classes, ednsFlags, flags, types, udpBytesMax } from "../wire/constants.ts";
import { nameBytes, nameKey } from "../wire/name.ts";
import { readMessage, type ShownMessage, type ShownRecord } from "./read-message.ts";
import { shownName } from "./read-name.ts";

/** The services that these operations use. */
interface Services {
  nameServer: Pick<NameServer, "ask">;
}

const { operation } = operationsFor<Services>(dnsErrorCodes);

const ShownRecordSchema = z
  .object({ name: z.string(), ttl: z.int(), class: z.string(), type: z.string(), data: z.string() })
  .meta({ id: "DnsAnswerRecord", description: "A record of an answer, in the form of a zone file" });

const ResultSchema = z.object({
  rcode: z.string(),
  flags: z.array(z.string()),
  question: z.object({ name: z.string(), class: z.string(), type: z.string() }),
  answer: z.array(ShownRecordSchema),
  authority: z.array(ShownRecordSchema),
  additional: z.array(ShownRecordSchema),
  edns: z
    .object({
      udp: z.int(),
      flags: z.array(z.string()),
      nsid: z.string().optional(),
      extended_errors: z.array(z.object({ code: z.int(), text: z.string() })),
    })
    .nullable(),
  bytes: z.int(),
  text: z.string().meta({ description: "The answer as dig prints it" }),
});

const query = operation({
  id: "dns_query",
  method: "POST",
  path: "/zones/{zone_id}/edge/dns_query",
  summary: "Ask the name server for a name of the zone, and see its whole answer",
  access: dnsRead,
  audit: "none",
  body: z.strictObject({
    name: z.string().max(255),
    type: z.string().max(16).default("A"),
    dnssec: z.boolean().default(true).meta({ description: "Ask for signatures (the DO bit)" }),
  }),
  result: ResultSchema,
  async handle({ zone, body, services }) {
    const type = typeNumber(body.type);
    const key = nameKey(parseRecordName(body.name, zone.name));
    const response = await services.nameServer.ask(questionOf(nameBytes(key), type, body.dnssec));
    if (response === undefined) throw apiErrors.unavailable();
    const shown = readMessage(response);
    const question = { name: shownName(key), class: "IN", type: body.type.toUpperCase() };
    const { rcode, flags: set, answer, authority, additional, edns } = shown;
    return {
      rcode,
      flags: set,
      question,
      answer,
      authority,
      additional,
      edns:
        edns === undefined
          ? null
          : {
              udp: edns.udp,
              flags: edns.flags,
              ...(edns.nsid === undefined ? {} : { nsid: edns.nsid }),
              extended_errors: edns.extendedErrors,
            },
      bytes: response.length,
      text: textOf(shown, question),
    };
  },
});

const wireNames: ReadonlySet<string> = new Set(Object.keys(types));

/** The number of a type by its name, or by TYPE and its number (RFC 3597, 5). */
function typeNumber(text: string): number {
  const upper = text.toUpperCase();
  if (wireNames.has(upper)) return types[upper as keyof typeof types];
  const number = Number(/^TYPE(\d{1,5})$/.exec(upper)?.[1] ?? Number.NaN);
  if (number > 0 && number < 65_536) return number;
  throw apiErrors.invalid(
    `Expected a type of DNS records for type, such as A or TYPE65, but received ${JSON.stringify(text)}`,
    "/body/type",
  );
}

/** A query with one question and EDNS. */
const questionOf = (name: Buffer, type: number, dnssec: boolean): Buffer =>
  new ByteWriter()
    .uint16(0)
    .uint16(flags.rd)
    .uint16(1)
    .uint16(0)
    .uint16(0)
    .uint16(1)
    .bytes(name)
    .uint16(type)
    .uint16(classes.IN)
    .uint8(0)
    .uint16(types.OPT)
    .uint16(udpBytesMax)
    .uint32(dnssec ? ednsFlags.do : 0)
    .uint16(0)
    .done();

const line = ({ name, ttl, class: rclass, type, data }: ShownRecord): string =>
  [name, ttl, rclass, type, data].join("\t");

/** The answer as dig prints it. */
function textOf(shown: ShownMessage, question: { name: string; class: string; type: string }): string {
  const { rcode, flags: set, answer, authority, additional, edns } = shown;
  const counts = `QUERY: 1, ANSWER: ${answer.length}, AUTHORITY: ${authority.length}, ADDITIONAL: ${additional.length + (edns === undefined ? 0 : 1)}`;
  const sections = Object.entries({ ANSWER: answer, AUTHORITY: authority, ADDITIONAL: additional }).flatMap(
    ([title, records]) => (records.length === 0 ? [] : [`;; ${title} SECTION:`, ...records.map(line), ""]),
  );
  const pseudo =
    edns === undefined
      ? []
      : [
          ";; OPT PSEUDOSECTION:",
          `; EDNS: version: 0, flags:${edns.flags.map((flag) => ` ${flag}`).join("")}; udp: ${edns.udp}`,
          ...edns.extendedErrors.map(({ code, text }) => `; EDE: ${code} (${text})`),
        ];
  return [
    `;; ->>HEADER<<- opcode: QUERY, status: ${rcode}, id: 0`,
    `;; flags: ${set.join(" ")}; ${counts}`,
    "",
    ...pseudo,
    ";; QUESTION SECTION:",
    `;${[question.name, question.class, question.type].join("\t")}`,
    "",
    ...sections,
  ].join("\n");
}

export const queryOperations = [query];
