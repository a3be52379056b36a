import { encode } from "dns-packet";
import { Authority } from "../../src/dns/name-server/authority.ts";
import { dnsSettingsDefaults } from "../../src/dns/settings/dns-settings.ts";
import { keyTagOf, newKey } from "../../src/dns/dnssec/key.ts";
import { ZoneSigner } from "../../src/dns/dnssec/zone-signer.ts";
import type { Connection } from "../../src/dns/name-server/transport/tcp.ts";
import { signRequest, type TransferKey } from "../../src/dns/transfers/tsig.ts";
import { nameKey } from "../../src/dns/name-server/wire/name.ts";
import type { ServedRecord } from "../../src/dns/name-server/zone/configuration.ts";
import type { Random } from "./random.ts";

export interface Outcome {
  packets: number;
  answered: number;
  silent: number;
  waiting: number;
  /** Transfer requests that were served or refused. */
  transfers: number;
  /** Counts of responses by code. */
  byRcode: Record<number, number>;
  /** Failures: exceptions, and responses that are too large or do not match the question. */
  faults: { packet: string; why: string }[];
}

const zone = "fuzz.example";
const key: TransferKey = { id: "k", name: nameKey("k.test"), algorithm: "hmac-sha256.", secret: "c2VjcmV0" };
const record = (type: ServedRecord["type"], content: string): ServedRecord => ({
  type,
  content,
  data: null,
  priority: type === "MX" ? 5 : null,
  ttl: 300,
  proxied: false,
  settings: {},
});

/** An authority without sockets, with a signed zone of many kinds of names. */
function authority(): Authority {
  const signing = newKey();
  const made = new Authority(
    { responseRateLimit: 0, cookieSecret: Buffer.alloc(16, 7).toString("base64"), identity: "fuzz" },
    {
      makeSigner: (name, zoneKey) => new ZoneSigner(name, zoneKey),
      want: () => {},
      onTransfer: () => {},
      onQueries: () => {},
    },
    {
      error: (details) => {
        throw (details as { err: Error }).err;
      },
    },
  );
  const names: [string, ServedRecord[]][] = [
    [zone, [record("MX", `mail.${zone}`), record("CNAME", "elsewhere.test")]],
    [`www.${zone}`, Array.from({ length: 60 }, (_, index) => record("A", `192.0.2.${index}`))],
    [`*.w.${zone}`, [record("TXT", `"${"t".repeat(250)}" "${"u".repeat(250)}"`)]],
    [`alias.${zone}`, [record("CNAME", `x.w.${zone}`)]],
    [`sub.${zone}`, [record("NS", `ns.sub.${zone}`)]],
    [`ns.sub.${zone}`, [record("A", "192.0.2.53")]],
    [`a.b.c.${zone}`, [record("AAAA", "2001:db8::1")]],
  ];
  made.apply({
    kind: "zone",
    names,
    configuration: {
      id: "z",
      accountId: "a",
      name: zone,
      nameServers: ["ns1.test", "ns2.test"],
      settings: dnsSettingsDefaults,
      serial: 7,
      isProxying: true,
      edgeAddresses: ["203.0.113.7"],
      dnssec: { ...signing, keyTag: keyTagOf(signing.publicKey), isLeaving: false, isMultiSigner: false },
    },
  });
  const peers = [{ id: "p", address: null, port: 53, keyId: key.id }];
  made.apply({ kind: "transfers", config: { keys: [key], rules: [["z", { peers, networks: [] }]] } });
  return made;
}

/** Well-formed queries of every kind, as seeds for mutations. */
export function seeds(): Buffer[] {
  const names = [
    "",
    "www.",
    "x.w.",
    "*.w.",
    "alias.",
    "x.sub.",
    "b.c.",
    "none.",
    `${"l".repeat(63)}.`.repeat(3),
  ];
  const types = ["A", "TXT", "MX", "DS", "SOA", "NSEC", "ANY", "DNSKEY", "AXFR", "IXFR", "CNAME", "OPT"];
  const options = [
    { code: 3, data: Buffer.alloc(0) },
    { code: 10, data: Buffer.alloc(8, 1) },
    { code: 8, data: Buffer.from("0001180001020304", "hex") },
  ];
  const opt = { type: "OPT", name: ".", udpPayloadSize: 1232, flags: 0x8000, options };
  return names.flatMap((name) =>
    types.flatMap((type) => {
      const questions = [{ name: `${name}${zone}`, type } as never];
      const plain = encode({ type: "query", id: 1, questions });
      const extended = encode({ type: "query", id: 2, questions, additionals: [opt as never] });
      return [plain, extended, signRequest(plain, key, Math.floor(Date.now() / 1000))];
    }),
  );
}

/** Bytes that matter often: lengths, pointers, counts. */
const boundaryBytes = [0, 1, 2, 11, 12, 41, 63, 64, 0x80, 0xbf, 0xc0, 0xc1, 250, 251, 252, 255];

export function mutated(random: Random, seed: Buffer): Buffer {
  let packet = Buffer.from(seed);
  for (let count = random.below(4); count >= 0; count--) {
    const at = random.below(Math.max(packet.length, 1));
    switch (random.below(7)) {
      case 0:
        if (packet.length > 0) packet[at] = random.below(256);
        break;
      case 1:
        if (packet.length > 0) packet[at] = random.pick(boundaryBytes);
        break;
      case 2:
        packet = packet.subarray(0, at);
        break;
      case 3:
        packet = Buffer.concat([
          packet.subarray(0, at),
          Buffer.from(random.hex(random.below(20)), "hex"),
          packet.subarray(at),
        ]);
        break;
      case 4:
        packet = Buffer.concat([packet.subarray(0, at), packet.subarray(at + random.below(8))]);
        break;
      case 5:
        packet = Buffer.concat([packet, packet.subarray(at)]);
        break;
      default:
        if (packet.length >= 12) packet[random.below(12)] = random.pick(boundaryBytes);
    }
  }
  return packet.subarray(0, 4096);
}

/** Sends mutated queries to the authority, as datagrams and as parts of streams. */
export class Mutations {
  readonly #authority = authority();
  readonly #seeds = seeds();
  readonly #random: Random;
  readonly outcome: Outcome = {
    packets: 0,
    answered: 0,
    silent: 0,
    waiting: 0,
    transfers: 0,
    byRcode: {},
    faults: [],
  };

  constructor(random: Random) {
    this.#random = random;
  }

  run(count: number): void {
    for (let index = 0; index < count; index++) {
      const packet = mutated(this.#random, this.#random.pick(this.#seeds));
      const isTcp = this.#random.chance(30);
      const { outcome } = this;
      outcome.packets++;
      let isSettled = false;
      const connection: Connection = {
        address: "192.0.2.1",
        end: () => {},
        send: async (answer) => {
          this.#check(packet, answer, true);
          return true;
        },
      };
      try {
        if (isTcp && this.#authority.transfers.take(packet, connection)) {
          outcome.transfers++;
          continue;
        }
        this.#authority.answering.take(packet, packet.length, { address: "192.0.2.1", isTcp }, (answer) => {
          isSettled = true;
          if (answer === undefined) outcome.silent++;
          else this.#check(packet, answer, isTcp);
        });
      } catch (error) {
        this.#fault(packet, String((error as Error).stack));
        continue;
      }
      if (!isSettled) outcome.waiting++;
    }
  }

  #check(packet: Buffer, answer: Buffer, isTcp: boolean): void {
    const { outcome } = this;
    outcome.answered++;
    const rcode = answer[3]! & 15;
    outcome.byRcode[rcode] = (outcome.byRcode[rcode] ?? 0) + 1;
    if (answer.length < 12 || answer.length > (isTcp ? 65_535 : 1232))
      this.#fault(packet, `${answer.length} bytes`);
    if (answer[0] !== packet[0] || answer[1] !== packet[1]) this.#fault(packet, "another id");
    if ((answer[2]! & 0x80) === 0) this.#fault(packet, "no answer");
  }

  #fault(packet: Buffer, why: string): void {
    if (this.outcome.faults.length < 10) this.outcome.faults.push({ packet: packet.toString("hex"), why });
  }
}
