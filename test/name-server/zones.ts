import type { Random } from "./random.ts";

export interface GeneratedZone {
  name: string;
  /** Records in the notation of zone files, with names relative to the zone. */
  file: string;
  names: string[];
}

const labels = ["a", "b", "c", "www", "mail", "x1", "s9", "deep", "n-1", "zz"];
const ttls = [30, 300, 3600, 86_400];
const base64 = (random: Random, bytes: number): string =>
  Buffer.from(random.hex(bytes), "hex").toString("base64");

/** The value of a record of each type, in the notation of zone files. */
const values: Record<string, (random: Random, target: string) => string> = {
  A: (random) => `192.0.2.${random.below(256)}`,
  AAAA: (random) => `2001:db8::${random.hex(2)}:${random.hex(2)}`,
  CAA: (random) => `0 ${random.pick(["issue", "issuewild"])} "ca${random.below(9)}.example.net"`,
  CERT: (random) => `PKIX ${random.below(65_536)} 8 ${base64(random, 20)}`,
  DNSKEY: (random) => `257 3 13 ${base64(random, 64)}`,
  HTTPS: (random, target) => random.pick(["1 . alpn=h2,h3", `2 ${target} port=8443`, `0 ${target}`]),
  SVCB: (random, target) => random.pick([`0 ${target}`, `1 ${target} alpn=h2 ipv4hint=192.0.2.1`]),
  LOC: (random) =>
    `${random.below(90)} 12 3.5 N ${random.below(180)} 5 6.1 E ${random.below(900)}m 10m 100m 10m`,
  MX: (random, target) => `${random.below(100)} ${target}`,
  NAPTR: (random, target) => `${random.below(100)} 10 "S" "SIP+D2U" "" ${target}`,
  OPENPGPKEY: (random) => base64(random, 40),
  PTR: (_, target) => target,
  SMIMEA: (random) => `3 1 1 ${random.hex(32)}`,
  SRV: (random, target) => `${random.below(10)} ${random.below(10)} ${random.below(65_536)} ${target}`,
  SSHFP: (random) => `4 2 ${random.hex(32)}`,
  TLSA: (random) => `3 1 1 ${random.hex(32)}`,
  TXT: (random) =>
    random
      .pick([`"${"t".repeat(random.below(300) + 1)}"`, `"a" "b c" "${random.hex(4)}"`])
      .replace(/"(t{200,})"/, (_, text: string) => `"${text.slice(0, 200)}" "${text.slice(200)}"`),
  URI: (random) => `${random.below(100)} 1 "https://example.net/${random.hex(2)}"`,
};
export const generatedTypes = Object.keys(values);

/**
 * A zone with names of every kind: wildcards, delegations with and without glue and DS, and empty
 * non-terminals.
 */
export function generateZone(random: Random, name: string, count: number): GeneratedZone {
  const lines = new Set<string>();
  const names = new Set<string>();
  const aliases = new Set<string>();
  const ttlOf = new Map<string, number>();
  const add = (owner: string, type: string, value: string): void => {
    const key = `${owner} ${type}`;
    const ttl = ttlOf.get(key) ?? random.pick(ttls);
    ttlOf.set(key, ttl);
    names.add(owner);
    lines.add(`${owner} ${ttl} IN ${type} ${value}`);
  };
  const anyName = (): string => {
    const parts = Array.from({ length: random.below(4) + 1 }, () => random.pick(labels));
    if (random.chance(12)) parts[0] = "*";
    return `${parts.join(".")}.${name}.`;
  };
  const target = (): string => {
    if (random.chance(30)) return `t${random.below(20)}.elsewhere.example.net.`;
    const name = names.size > 0 && random.chance(70) ? random.pick([...names]) : anyName();
    return name.replace("*", "w").replace("_s._tcp.", "");
  };

  for (let cut = 0; cut < 3; cut++) {
    const owner = `${random.pick(labels)}${cut}.${random.chance(40) ? "b." : ""}${name}.`;
    add(owner, "NS", `ns1.${owner}`);
    add(`ns1.${owner}`, "A", values["A"]!(random, ""));
    if (random.chance(50)) add(`ns1.${owner}`, "AAAA", values["AAAA"]!(random, ""));
    if (random.chance(50)) add(owner, "NS", "ns.elsewhere.example.net.");
    if (random.chance(50)) add(owner, "DS", `${random.below(65_536)} 13 2 ${random.hex(32)}`);
    if (random.chance(50)) add(`hidden.${owner}`, "TXT", '"below a delegation"');
    aliases.add(owner);
  }
  while (lines.size < count) {
    const owner = random.chance(5) ? `${name}.` : anyName();
    if (aliases.has(owner)) continue;
    if (!names.has(owner) && owner !== `${name}.` && random.chance(12)) {
      aliases.add(owner);
      add(owner, "CNAME", target());
    } else {
      const type = random.chance(30) ? "A" : random.pick(generatedTypes);
      const place = type === "SRV" ? `_s._tcp.${owner.replace("*", "w")}` : owner;
      if (aliases.has(place)) continue;
      for (let more = random.below(3); more >= 0; more--) add(place, type, values[type]!(random, target()));
    }
  }
  return { name, file: `${[...lines].join("\n")}\n`, names: [...names].map((each) => each.slice(0, -1)) };
}

/**
 * A query that probably matches: a name, a name above or below it, a name under a wildcard, or a name in
 * different case.
 */
export function generateQuestion(random: Random, zone: GeneratedZone): { name: string; type: string } {
  let name = random.pick(zone.names).replace("*", random.pick(["*", "w", "a.w"]));
  const kind = random.below(10);
  if (kind === 0) name = `${random.pick([...labels, "none", "*"])}.${name}`;
  if (kind === 1) name = name.slice(name.indexOf(".") + 1);
  if (kind === 2) name = `${random.pick(labels)}.${random.pick([...labels, "none"])}.${zone.name}`;
  if (kind === 3) name = name.toUpperCase();
  if (!name.toLowerCase().endsWith(zone.name)) name = zone.name;
  const types = [...generatedTypes, "A", "A", "AAAA", "NS", "SOA", "CNAME", "DS", "DNSKEY", "HINFO"];
  return { name, type: random.pick(types) };
}
