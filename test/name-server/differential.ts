import { decode, encode, type Answer } from "dns-packet";
import type { TestServer } from "../helpers/server.ts";
import { startNsd } from "./nsd.ts";
import { Random } from "./random.ts";
import { DnsStream } from "./stream.ts";
import { generateQuestion, generateZone } from "./zones.ts";

export interface Comparison {
  questions: number;
  zones: number;
  records: number;
  byRcode: Record<string, number>;
  differences: { question: string; ours: unknown; theirs: unknown }[];
}

const inFlight = 200;
const noted = 5;

/** Compares answers from zones of every kind with those of NSD with the exported zones. */
export async function compareWithNsd(
  server: TestServer,
  options: { zones: number; records: number; questionsPerZone: number; seed: number },
): Promise<Comparison> {
  const random = new Random(options.seed);
  const zones = Array.from({ length: options.zones }, (_, index) =>
    generateZone(random, `zone${index}.example`, options.records),
  );
  const exported = [];
  for (const { name, file } of zones) {
    const { id } = await server.client.zones.create({ account: { id: server.ready.account_id }, name });
    await server.client.zones.activationCheck.trigger({ zone_id: id });
    await server.client.dns.records.import({ zone_id: id, file });
    exported.push({ name, file: await server.client.dns.records.export({ zone_id: id }) });
  }
  const nsd = await startNsd(exported);
  const ours = await DnsStream.open(Number(server.ready.dns.split(":").at(-1)));
  const theirs = await DnsStream.open(nsd.port);
  const comparison: Comparison = {
    questions: 0,
    zones: zones.length,
    records: zones.reduce((sum, { file }) => sum + file.split("\n").length - 1, 0),
    byRcode: {},
    differences: [],
  };
  try {
    for (const zone of zones) {
      const compare = async (): Promise<void> => {
        const question = generateQuestion(random, zone);
        const message = encode({ type: "query", questions: [question as never] });
        const [mine, reference] = await Promise.all([ours.ask(message), theirs.ask(message)]);
        const [one, other] = [normalized(mine, zone.name), normalized(reference, zone.name)];
        comparison.questions++;
        comparison.byRcode[one.rcode] = (comparison.byRcode[one.rcode] ?? 0) + 1;
        const differs = JSON.stringify(one) !== JSON.stringify(other);
        if (differs && comparison.differences.length < noted)
          comparison.differences.push({
            question: `${question.name} ${question.type}`,
            ours: one,
            theirs: other,
          });
      };
      for (let left = options.questionsPerZone; left > 0; left -= inFlight)
        await Promise.all(Array.from({ length: Math.min(left, inFlight) }, compare));
    }
  } finally {
    ours.close();
    theirs.close();
    await nsd.close();
  }
  return comparison;
}

/**
 * The parts of an answer that must be equal. Servers may differ in the order of records and in additional
 * records.
 */
function normalized(message: Buffer, zoneName: string) {
  const { flags = 0, answers = [], authorities = [], additionals = [], questions = [] } = decode(message);
  const isReferral = authorities.some(({ type, name }) => type === "NS" && name.toLowerCase() !== zoneName);
  return {
    rcode: flags & 15,
    isAuthoritative: (flags & 0x0400) !== 0,
    question: questions[0]?.name,
    answers: answers.map(show).toSorted(),
    authorities: authorities
      .filter(({ type, name }) => type !== "NS" || name.toLowerCase() !== zoneName)
      .map(show)
      .toSorted(),
    glue: isReferral ? additionals.map(show).toSorted() : [],
  };
}

/** Names point into the question and therefore have its case. Bytes are shown as numbers. */
const show = (record: Answer): string => {
  const { name, type, ttl, data } = record as { name: string; type: string; ttl: number; data: unknown };
  return `${name} ${ttl} ${type} ${JSON.stringify(data)}`.toLowerCase();
};
