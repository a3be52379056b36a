import { lookup, resolveNs } from "node:dns/promises";
import { isIP } from "node:net";
import { ask, type Server } from "../../dns/name-server/transport/client.ts";
import { headerBytes, types } from "../../dns/name-server/wire/constants.ts";
import { endOfOwner, endOfRecord } from "../../dns/name-server/wire/query.ts";
import type { Document } from "./document.ts";
import { MigrationError } from "./failure.ts";

export interface AnswerDifference {
  name: string;
  type: string;
  a: string;
  b: string;
}
interface Side {
  document: Document;
  profile: { name: string; dns: string | undefined } | undefined;
}

type TypeName = keyof typeof types;
/** Types whose data ends with a name that may be compressed, and the number of bytes before the name. */
const compressed: Readonly<Partial<Record<TypeName, number>>> = { CNAME: 0, NS: 0, PTR: 0, MX: 2, SRV: 6 };
const rcodeNames = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];

/** The name servers of an account: the one in the variable …_DNS, or those that public DNS returns for the zone. */
export async function nameServersOf({ profile }: Side, zone: string): Promise<Server[]> {
  const { name = "", dns } = profile ?? {};
  if (dns !== undefined) {
    const match = /^(?:\[([\da-f:]+)\]|([^:[\]]+)):(\d{1,5})$/i.exec(dns);
    const host = match?.[1] ?? match?.[2];
    if (host === undefined) throw new MigrationError(`Expected ADDRESS:PORT for ${name.toUpperCase()}_DNS`);
    return [{ address: await addressOf(host), port: Number(match![3]) }];
  }
  // Before a change of name servers, the public DNS leads to the account's.
  if (name === "cloudflare") {
    const hosts = await resolveNs(zone);
    return Promise.all(hosts.map(async (host) => ({ address: await addressOf(host), port: 53 })));
  }
  throw new MigrationError(
    `Set ${name.toUpperCase()}_DNS to the address and port of a name server of ${zone}, such as 192.0.2.53:53`,
  );
}

const addressOf = async (host: string): Promise<string> =>
  isIP(host) === 0 ? (await lookup(host)).address : host;

/**
 * Asks both name servers for every name and type of the documents' records, and compares status, values and TTLs.
 * Proxied names lead to the edge of the account, so they must only have an answer.
 */
export async function compareAnswers(
  zone: string,
  documents: readonly [Document, Document],
  servers: readonly [readonly Server[], readonly Server[]],
): Promise<AnswerDifference[]> {
  const questions = questionsOf(zone, documents);
  const differences: AnswerDifference[] = [];
  for (const { name, type, isProxied } of questions.values()) {
    const [a, b] = await Promise.all(servers.map(async (each) => answerOf(each, name, type, isProxied)));
    if (a !== b) differences.push({ name, type, a: a!, b: b! });
  }
  return differences;
}

interface ProbedName {
  name: string;
  type: TypeName;
  isProxied: boolean;
}

function questionsOf(zone: string, documents: readonly Document[]): Map<string, ProbedName> {
  const questions = new Map<string, ProbedName>();
  const add = (name: string, type: TypeName, isProxied: boolean): void => {
    const known = questions.get(`${name} ${type}`);
    questions.set(`${name} ${type}`, { name, type, isProxied: isProxied || known?.isProxied === true });
  };
  for (const { resources } of documents)
    for (const { product, zone: of, value } of resources) {
      if (product !== "dns_record" || of !== zone) continue;
      const [name, type, isProxied] = [
        String(value["name"]),
        String(value["type"]),
        value["proxied"] === true,
      ];
      // A question for a wildcard is one for any name below it.
      const asked = name.replace(/^\*\./, "selvedge-diff.");
      if (isProxied) for (const family of ["A", "AAAA"] as const) add(asked, family, true);
      else if (type in types) add(asked, type as TypeName, false);
    }
  return questions;
}

async function answerOf(
  servers: readonly Server[],
  name: string,
  type: TypeName,
  isProxied: boolean,
): Promise<string> {
  try {
    const message = await ask(servers, name, types[type]);
    const { status, records } = readAnswer(message, types[type], compressed[type]);
    if (isProxied) return `${status}, ${records.length > 0 ? "addresses of the edge" : "no addresses"}`;
    return `${status} ${records.sort().join(", ")}`.trim();
  } catch (error) {
    return (error as Error).message;
  }
}

/** The status of a message, and its records of one type as "TTL hex". */
function readAnswer(
  message: Buffer,
  type: number,
  before: number | undefined,
): { status: string; records: string[] } {
  const records: string[] = [];
  let at = headerBytes;
  for (let left = message.readUInt16BE(4); left > 0; left--) at = endOfOwner(message, at, message.length) + 4;
  for (let left = message.readUInt16BE(6); left > 0; left--) {
    const end = endOfRecord(message, at, message.length);
    if (end < 0) throw new MigrationError("a malformed answer");
    const owner = endOfOwner(message, at, end);
    if (message.readUInt16BE(owner) === type) {
      const rdata = owner + 10;
      const value =
        before === undefined
          ? message.toString("hex", rdata, end)
          : message.toString("hex", rdata, rdata + before) + nameAt(message, rdata + before);
      records.push(`${message.readUInt32BE(owner + 4)} ${value}`);
    }
    at = end;
  }
  return { status: rcodeNames[message[3]! & 15] ?? "an error", records };
}

const labelsMax = 128;

/** A name that may be compressed (RFC 1035 §4.1.4). */
function nameAt(message: Buffer, start: number): string {
  const labels: string[] = [];
  let at = start;
  for (let steps = 0; steps < labelsMax; steps++) {
    const length = message.readUInt8(at);
    if (length === 0) return ` ${labels.join(".").toLowerCase()}.`;
    if (length >= 0xc0) at = message.readUInt16BE(at) & 0x3fff;
    else {
      labels.push(message.toString("latin1", at + 1, at + 1 + length));
      at += 1 + length;
    }
  }
  throw new MigrationError("a malformed name");
}
