import { createPrivateKey, sign, type KeyObject } from "node:crypto";
import { LRUCache } from "lru-cache";
import { ByteWriter } from "../wire/byte-writer.ts";
import { classes, types } from "../wire/constants.ts";
import { labelCount, nameKey, type NameKey } from "../wire/name.ts";
import type { ZoneKey } from "../zone/facts.ts";
import type { RRset } from "../zone/rrset.ts";
import { Overloaded, type Signer } from "../zone/signer.ts";
import { nsecRdata } from "./denial.ts";
import { algorithm, dnskeyRdata, dsRdata } from "./key.ts";

const hourMs = 3_600_000;
const validityMs = 48 * hourMs;
/** Half of the time is left to secondary clocks, caches and mishaps. */
const renewalMs = validityMs / 2;
/** Clocks of validators may be behind ours. */
const backdatedMs = hourMs;
const keyTtl = 3600;
/** Signatures kept for names that are made up as they are asked for: under wildcards, or not existing. */
const synthesizedMax = 20_000;
/** Such signatures made in a second: questions for random names must not take all of the processor. */
const synthesizedPerSecond = 5000;

interface Signature {
  owner: NameKey;
  source: RRset;
  set: RRset;
  keepUntilMs: number;
}

/** Signs a zone's answers as they are first given, and keeps the signatures. */
export class ZoneSigner implements Signer {
  readonly #zoneKey: NameKey;
  readonly #zoneName: string;
  readonly #key: ZoneKey;
  readonly #privateKey: KeyObject;
  /** By the set, so that what is changed or gone takes its signature along. */
  readonly #signatures = new WeakMap<RRset, Signature>();
  readonly #synthesized = new LRUCache<string, Signature>({ max: synthesizedMax });
  readonly #denials = new LRUCache<string, RRset>({ max: synthesizedMax });
  #tokens = synthesizedPerSecond;
  #tokensMs = 0;

  constructor(zoneName: string, key: ZoneKey) {
    this.#zoneName = zoneName;
    this.#zoneKey = nameKey(zoneName);
    this.#key = key;
    this.#privateKey = createPrivateKey({
      key: Buffer.from(key.privateKey, "base64"),
      format: "der",
      type: "pkcs8",
    });
  }

  apexSets(): RRset[] {
    const { publicKey, isLeaving, isMultiSigner } = this.#key;
    const dnskey = dnskeyRdata(publicKey);
    const set = (type: number, rdata: Buffer): RRset => ({ type, ttl: keyTtl, rdatas: [rdata] });
    const own = [set(types.DNSKEY, dnskey)];
    // With other signers, only their common owner knows which DS records the parent should have.
    if (isMultiSigner) return own;
    return isLeaving
      ? [
          ...own,
          set(types.CDS, Buffer.from("0000000000", "hex")),
          set(types.CDNSKEY, Buffer.from("0000030000", "hex")),
        ]
      : [...own, set(types.CDS, dsRdata(this.#zoneName, publicKey)), set(types.CDNSKEY, dnskey)];
  }

  signature(owner: NameKey, set: RRset): Signature {
    const nowMs = Date.now();
    const known = this.#signatures.get(set);
    if (known !== undefined && known.owner === owner && nowMs < known.keepUntilMs) return known;
    if (known === undefined || known.owner === owner) {
      const made = this.#sign(owner, set, nowMs);
      this.#signatures.set(set, made);
      return made;
    }
    // One set at several names: a wildcard's.
    const key = `${set.type} ${owner}`;
    const kept = this.#synthesized.get(key);
    if (kept !== undefined && kept.source === set && nowMs < kept.keepUntilMs) return kept;
    this.#spend(nowMs);
    const made = this.#sign(owner, set, nowMs);
    this.#synthesized.set(key, made);
    return made;
  }

  denial(owner: NameKey, present: readonly number[] | undefined, ttl: number): RRset {
    const key = `${ttl} ${present?.join() ?? ""} ${owner}`;
    let set = this.#denials.get(key);
    if (set === undefined) {
      this.#spend(Date.now());
      set = { type: types.NSEC, ttl, rdatas: [nsecRdata(owner, present)] };
      this.#denials.set(key, set);
    }
    return set;
  }

  #spend(nowMs: number): void {
    const gained = ((nowMs - this.#tokensMs) / 1000) * synthesizedPerSecond;
    this.#tokens = Math.min(synthesizedPerSecond, this.#tokens + gained);
    this.#tokensMs = nowMs;
    if (this.#tokens < 1) throw new Overloaded();
    this.#tokens--;
  }

  /** RFC 4034 §3.1.8.1. What is under a wildcard is signed as if it stood there by itself, and so needs no proof that it does not. */
  #sign(owner: NameKey, set: RRset, nowMs: number): Signature {
    const head = new ByteWriter()
      .uint16(set.type)
      .uint8(algorithm)
      .uint8(labelCount(owner))
      .uint32(set.ttl)
      .uint32(Math.floor((nowMs + validityMs) / 1000))
      .uint32(Math.floor((nowMs - backdatedMs) / 1000))
      .uint16(this.#key.keyTag)
      .latin1(this.#zoneKey)
      .done();
    const data = new ByteWriter().bytes(head);
    const rdatas = [...set.rdatas].sort((a, b) => Buffer.compare(a, b));
    for (const [index, rdata] of rdatas.entries()) {
      if (index > 0 && rdata.equals(rdatas[index - 1]!)) continue;
      data.latin1(owner).uint16(set.type).uint16(classes.IN).uint32(set.ttl);
      data.uint16(rdata.length).bytes(rdata);
    }
    const bytes = sign("sha256", data.done(), { key: this.#privateKey, dsaEncoding: "ieee-p1363" });
    const rrsig = { type: types.RRSIG, ttl: set.ttl, rdatas: [Buffer.concat([head, bytes])] };
    return { owner, source: set, set: rrsig, keepUntilMs: nowMs + renewalMs };
  }
}
