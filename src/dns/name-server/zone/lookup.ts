import { types, rcodes, extendedErrors } from "../wire/constants.ts";
import { addressBytes } from "../wire/address.ts";
import { isWithin, type NameKey } from "../wire/name.ts";
import { noSections, type DnsAnswer, type AnswerEntry, type Sections } from "./answer.ts";
import { compose } from "./composer.ts";
import { Awaited, type Flattening } from "./flattening.ts";
import type { NameSpace } from "./name-space.ts";
import type { Contents, ZoneNode, CnameTarget } from "./node.ts";
import type { RRset } from "./rrset.ts";
import type { ServedZone } from "./zone.ts";

export interface Question {
  name: NameKey;
  type: number;
  /** The type and the client's options, from `questionKind`. */
  kind: number;
  /** Whether the client wants signatures. Only signed zones have them. */
  isSigned: boolean;
  /**
   * Whether the client understands compact denial and therefore wants NXDOMAIN for names that do not exist
   * (RFC 9824 §5.1).
   */
  isCompactOk: boolean;
}

/** Limit on the CNAMEs followed for one answer. */
const hopsMax = 12;
/** Answers for types above this are not cached, because a client can query 65,536 of them. */
const cachedTypeMax = 300;
const signedBit = 1 << 16;
const compactBit = 1 << 17;
/** The kind of a question as a number: its type, and bits for a client that takes signatures and compact denial. */
export const questionKind = (type: number, takesSignatures: boolean, takesCompact: boolean): number =>
  type | (takesSignatures ? signedBit : 0) | (takesCompact ? compactBit : 0);
const negativeBit = 1 << 18;
const anyTtl = 3600;
/** The answer to ANY (RFC 8482 §4.2). */
const anySet: RRset = { type: types.HINFO, ttl: anyTtl, rdatas: [Buffer.from("\x07RFC8482\x00", "latin1")] };

/** An answer under construction. */
interface Draft {
  question: Question;
  sections: Sections;
  rcode: number;
  isAuthoritative: boolean;
  /** Whether it uses names other than the question's. */
  isWide: boolean;
  keepUntilMs: number;
  extendedError: number | undefined;
}

const recentMax = 200_000;

/** Finds the answer to a question in the zones. */
export class Lookup {
  readonly #space: NameSpace;
  readonly #flattening: Flattening;
  /** Cached answers by kind of question and name, which are found without searching for the zone. */
  readonly #recent = new Map<number, Map<NameKey, DnsAnswer>>();
  #recentEpoch = -1;
  #recentCount = 0;

  constructor(space: NameSpace, flattening: Flattening) {
    this.#space = space;
    this.#flattening = flattening;
  }

  /** The cached answer, if nothing has changed since it was made. */
  recent(name: NameKey, kind: number, nowMs: number): DnsAnswer | undefined {
    if (this.#recentEpoch !== this.#space.epoch) return undefined;
    const cached = this.#recent.get(kind)?.get(name);
    return cached !== undefined && this.#isCurrent(cached, nowMs) ? cached : undefined;
  }

  #remember(name: NameKey, kind: number, answer: DnsAnswer): void {
    if (this.#recentEpoch !== this.#space.epoch || this.#recentCount >= recentMax) {
      this.#recent.clear();
      this.#recentEpoch = this.#space.epoch;
      this.#recentCount = 0;
    }
    let ofKind = this.#recent.get(kind);
    if (ofKind === undefined) this.#recent.set(kind, (ofKind = new Map()));
    ofKind.set(name, answer);
    this.#recentCount++;
  }

  /** The answer, or the lookup that it needs first. */
  answer(zone: ServedZone, question: Question, nowMs: number): DnsAnswer | Awaited {
    const { name, type } = question;
    const match = zone.cutAbove(name) === undefined ? zone.match(name) : undefined;
    if (!question.isSigned && (match?.kind === "none" || match?.kind === "empty"))
      return negative(zone, match.kind === "none" ? rcodes.nameError : rcodes.noError);
    const isWildcard = match?.kind === "wildcard";
    if (match?.kind !== "node" && !(isWildcard && !question.isSigned))
      return this.#make(zone, question, nowMs);

    const { node } = match;
    // An answer cached at a wildcard is used for every name that it matches.
    const forSeveral = isWildcard || (node.key.startsWith("\x01*") && !question.isSigned);
    const key = cacheKey(question);
    const cached = node.answers.get(key);
    if (cached !== undefined && this.#isCurrent(cached, nowMs)) {
      if (!forSeveral) this.#remember(name, question.kind, cached);
      return cached;
    }
    const contents = zone.contents(node);
    if (!question.isSigned && isNegative(contents, type)) return negative(zone, rcodes.noError);
    if (forSeveral && (contents.alias !== undefined || contents.flattened !== undefined))
      return this.#make(zone, question, nowMs);
    const made = this.#make(zone, question, nowMs, forSeveral);
    const isCacheable =
      !(made instanceof Awaited) && type <= cachedTypeMax && contents.flattened === undefined;
    if (isCacheable) node.answers.set(key, made);
    return made;
  }

  #isCurrent(cached: DnsAnswer, nowMs: number): boolean {
    return (cached.epoch === undefined || cached.epoch === this.#space.epoch) && nowMs < cached.keepUntilMs;
  }

  #make(zone: ServedZone, question: Question, nowMs: number, forSeveral = false): DnsAnswer | Awaited {
    const draft: Draft = {
      question,
      sections: noSections(),
      rcode: rcodes.noError,
      isAuthoritative: true,
      isWide: false,
      keepUntilMs: Number.POSITIVE_INFINITY,
      extendedError: undefined,
    };
    const awaited = this.#follow(draft, zone, nowMs);
    if (awaited !== undefined) return awaited;
    return {
      rcode: draft.rcode,
      isAuthoritative: draft.isAuthoritative,
      ...compose(draft.sections, question.name, forSeveral),
      suffix: undefined,
      epoch: draft.isWide ? this.#space.epoch : undefined,
      keepUntilMs: draft.keepUntilMs,
      extendedError: draft.extendedError,
    };
  }

  /** Follows CNAMEs from the question's name while the names are in our zones (RFC 1034 §4.3.2). */
  #follow(draft: Draft, first: ServedZone, nowMs: number): Awaited | undefined {
    const { type } = draft.question;
    const seen = new Set<NameKey>();
    let zone = first;
    let name = draft.question.name;
    for (let hop = 0; hop <= hopsMax; hop++) {
      seen.add(name);
      const cut = zone.cutAbove(name);
      if (cut !== undefined && !(cut.key === name && type === types.DS)) {
        referral(draft, zone, cut, hop === 0);
        return undefined;
      }
      const match = zone.match(name);
      if (match.kind === "none" || match.kind === "empty") {
        deny(draft, zone, name, match.kind === "none" ? undefined : []);
        return undefined;
      }
      const contents = zone.contents(match.node);
      const { alias, flattened } = contents;
      const set = type === types.ANY ? anySet : contents.sets.get(type);
      if (set !== undefined) {
        add(draft, draft.sections.answer, zone, name, set);
        return undefined;
      }
      if (flattened !== undefined && (type === types.A || type === types.AAAA)) {
        return this.#flatten(draft, zone, name, contents, flattened, nowMs);
      }
      const present = cut === undefined ? typesOf(contents) : [types.NS];
      if (type === types.NSEC && draft.question.isSigned && zone.signer !== undefined) {
        const nsec = zone.signer.denial(name, present, zone.negativeSoa.ttl);
        add(draft, draft.sections.answer, zone, name, nsec);
        return undefined;
      }
      if (alias === undefined) {
        deny(draft, zone, name, present);
        return undefined;
      }
      add(draft, draft.sections.answer, zone, name, alias);
      if (type === types.CNAME) return undefined;
      draft.isWide = true;
      const next = this.#space.find(alias.targetKey);
      if (
        next === undefined ||
        next.configuration.accountId !== zone.configuration.accountId ||
        seen.has(alias.targetKey)
      )
        return undefined;
      zone = next;
      name = alias.targetKey;
    }
    return undefined;
  }

  /** Replaces a CNAME with the addresses of its target. */
  #flatten(
    draft: Draft,
    zone: ServedZone,
    name: NameKey,
    contents: Contents,
    flattened: CnameTarget,
    nowMs: number,
  ): Awaited | undefined {
    draft.isWide = true;
    const { type } = draft.question;
    const found = this.addresses(flattened, type, zone, nowMs);
    if (found instanceof Awaited) return found;
    if (found === "failed") {
      draft.rcode = rcodes.serverFailure;
      draft.extendedError = extendedErrors.noReachableAuthority;
      draft.isAuthoritative = false;
      return undefined;
    }
    draft.keepUntilMs = 0;
    if (found.rdatas.length === 0) {
      // Claim that the other address type exists, because it is not looked up until it is queried and must
      // not be denied before.
      const other = type === types.A ? types.AAAA : types.A;
      deny(draft, zone, name, [...contents.sets.keys(), other]);
    } else
      add(draft, draft.sections.answer, zone, name, { ...found, ttl: Math.min(found.ttl, flattened.ttl) });
    return undefined;
  }

  /** The addresses of a target, from our own zones or from an external lookup. */
  addresses(
    { target, targetKey }: CnameTarget,
    type: number,
    from: ServedZone,
    nowMs: number,
    hops = 0,
  ): RRset | "failed" | Awaited {
    const none: RRset = { type, ttl: from.negativeSoa.ttl, rdatas: [] };
    if (hops > hopsMax) return "failed";
    const zone = this.#space.find(targetKey);
    if (
      zone === undefined ||
      zone.configuration.accountId !== from.configuration.accountId ||
      zone.cutAbove(targetKey)
    ) {
      const wanted = { target, type };
      const found = this.#flattening.find(wanted, nowMs);
      if (found === undefined) return new Awaited(wanted);
      if (found === "failed") return found;
      const ttl = Math.max(1, Math.min(found.ttl, Math.ceil((found.untilMs - nowMs) / 1000)));
      return { type, ttl, rdatas: found.addresses.map(addressBytes) };
    }
    const match = zone.match(targetKey);
    if (match.kind === "none" || match.kind === "empty") return none;
    const { sets, alias, flattened } = zone.contents(match.node);
    const set = sets.get(type);
    if (set !== undefined) return set;
    const next = flattened ?? alias;
    if (next === undefined) return none;
    const found = this.addresses(next, type, zone, nowMs, hops + 1);
    return typeof found === "string" || found instanceof Awaited
      ? found
      : { ...found, ttl: Math.min(found.ttl, next.ttl) };
  }
}

const cacheKey = ({ type, isSigned, isCompactOk }: Question): number =>
  questionKind(type, isSigned, isCompactOk);

const isNegative = ({ sets, alias, flattened }: Contents, type: number): boolean =>
  type !== types.ANY && !sets.has(type) && alias === undefined && flattened === undefined;

/** An unsigned negative answer, shared by all names of a zone. */
function negative(zone: ServedZone, rcode: number): DnsAnswer {
  const { answers } = zone.node(zone.key)!;
  const key = negativeBit | rcode;
  let answer = answers.get(key);
  if (answer === undefined) {
    const authority = [{ owner: zone.key, set: zone.negativeSoa }];
    answer = {
      rcode,
      isAuthoritative: true,
      ...compose({ ...noSections(), authority }, zone.key, true),
      suffix: zone.key,
      epoch: undefined,
      keepUntilMs: Number.POSITIVE_INFINITY,
      extendedError: undefined,
    };
    answers.set(key, answer);
  }
  return answer;
}

/** Adds a set, with its signature if the answer is signed. */
function add(draft: Draft, section: AnswerEntry[], zone: ServedZone, owner: NameKey, set: RRset): void {
  section.push({ owner, set });
  if (!draft.question.isSigned || zone.signer === undefined) return;
  const signature = zone.signer.signature(owner, set);
  section.push({ owner, set: signature.set });
  draft.keepUntilMs = Math.min(draft.keepUntilMs, signature.keepUntilMs);
}

/** Denies the type at a name, or, without `present`, the existence of the name. */
function deny(draft: Draft, zone: ServedZone, owner: NameKey, present: readonly number[] | undefined): void {
  const { authority } = draft.sections;
  add(draft, authority, zone, zone.key, zone.negativeSoa);
  const { signer } = zone;
  const { isSigned, isCompactOk } = draft.question;
  if (isSigned && signer !== undefined) {
    add(draft, authority, zone, owner, signer.denial(owner, present, zone.negativeSoa.ttl));
    if (present === undefined && isCompactOk) draft.rcode = rcodes.nameError;
  } else if (present === undefined) draft.rcode = rcodes.nameError;
}

/** Refers to the name servers of a delegated zone (RFC 1034 §4.2.1). */
function referral(draft: Draft, zone: ServedZone, cut: ZoneNode, isWholeAnswer: boolean): void {
  draft.isWide = true;
  if (isWholeAnswer) draft.isAuthoritative = false;
  const { authority, additional } = draft.sections;
  const { sets } = zone.contents(cut);
  const servers = sets.get(types.NS)!;
  authority.push({ owner: cut.key, set: servers });
  if (draft.question.isSigned && zone.signer !== undefined) {
    const ds = sets.get(types.DS);
    const proof = ds ?? zone.signer.denial(cut.key, [types.NS], zone.negativeSoa.ttl);
    add(draft, authority, zone, cut.key, proof);
  }
  for (const rdata of servers.rdatas) {
    const target = rdata.toString("latin1");
    const glue = isWithin(target, zone.key) ? zone.node(target) : undefined;
    if (glue === undefined) continue;
    const found = zone.contents(glue).sets;
    for (const type of [types.A, types.AAAA]) {
      const set = found.get(type);
      if (set !== undefined) additional.push({ owner: target, set });
    }
  }
}

const typesOf = ({ sets, alias, flattened }: Contents): number[] => [
  ...sets.keys(),
  ...(alias === undefined ? [] : [types.CNAME]),
  ...(flattened === undefined ? [] : [types.A, types.AAAA]),
];
