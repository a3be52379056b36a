import { createPrivateKey, sign, type KeyObject } from "node:crypto";
import { LRUCache } from "lru-cache";
import { ByteWriter } from "../name-server/wire/byte-writer.ts";
import { classes, types } from "../name-server/wire/constants.ts";
import { labelCount, nameKey, type NameKey } from "../name-server/wire/name.ts";
import type { ZoneKey } from "../name-server/zone/configuration.ts";
import type { RRset } from "../name-server/zone/rrset.ts";
import { Overloaded, type RRsetSigner } from "../name-server/zone/signer.ts";
import { nsecRdata } from "./denial.ts";
import { algorithm, dnskeyRdata, dsRdata } from "./key.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";
import { clock } from "../../platform/timers/clock.ts";

const hourMs = 3_600_000;
const validityMs = 48 * hourMs;
/**
 * Signatures are renewed at half of their validity, which leaves time for wrong clocks, caches and outages.
 */
const renewalMs = validityMs / 2;
/** Signatures begin in the past, because validators' clocks may be slow. */
const backdatedMs = hourMs;
const keyTtl = 3600;
/** Limit on cached signatures of synthesized names: those under wildcards and those that do not exist. */
const synthesizedMax = 20_000;
/** Limit on such signatures in a second, so that queries for random names cannot use the whole CPU. */
const synthesizedPerSecond = 5000;

interface Signature {
  owner: NameKey;
  source: RRset;
  set: RRset;
  keepUntilMs: number;
}

/** Signs a zone's RRsets when they are first needed, and caches the signatures. */
export class ZoneSigner implements RRsetSigner {
  readonly #zoneKey: NameKey;
  readonly #zoneName: string;
  readonly #key: ZoneKey;
  readonly #privateKey: KeyObject;
  /** Keyed by the RRset object, so that a signature is collected together with its set. */
  readonly #signatures = new WeakMap<RRset, Signature>();
  readonly #synthesized = new LRUCache<string, Signature>(entriesMax(synthesizedMax));
  readonly #denials = new LRUCache<string, RRset>(entriesMax(synthesizedMax));
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
    // With several signers, only the zone's owner knows which DS records the parent should have.
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
    const nowMs = clock.now();
    const known = this.#signatures.get(set);
    if (known !== undefined && known.owner === owner && nowMs < known.keepUntilMs) return known;
    if (known === undefined || known.owner === owner) {
      const made = this.#sign(owner, set, nowMs);
      this.#signatures.set(set, made);
      return made;
    }
    // A wildcard's set is signed for several names.
    const key = `${set.type} ${owner}`;
    const kept = this.#synthesized.get(key);
    if (kept !== undefined && kept.source === set && nowMs < kept.keepUntilMs) return kept;
    this.#spend();
    const made = this.#sign(owner, set, nowMs);
    this.#synthesized.set(key, made);
    return made;
  }

  denial(owner: NameKey, present: readonly number[] | undefined, ttl: number): RRset {
    const key = `${ttl} ${present?.join() ?? ""} ${owner}`;
    let set = this.#denials.get(key);
    if (set === undefined) {
      this.#spend();
      set = { type: types.NSEC, ttl, rdatas: [nsecRdata(owner, present)] };
      this.#denials.set(key, set);
    }
    return set;
  }

  #spend(): void {
    const nowMs = performance.now();
    const gained = ((nowMs - this.#tokensMs) / 1000) * synthesizedPerSecond;
    this.#tokens = Math.min(synthesizedPerSecond, this.#tokens + gained);
    this.#tokensMs = nowMs;
    if (this.#tokens < 1) throw new Overloaded();
    this.#tokens--;
  }

  /**
   * Makes an RRSIG (RFC 4034 §3.1.8.1). A name under a wildcard is signed as if it existed, so it needs no
   * proof of its absence.
   */
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
