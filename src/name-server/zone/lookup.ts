import { types, rcodes, extendedErrors } from "../wire/constants.ts";
import { addressBytes } from "../wire/address.ts";
import { isWithin, type NameKey } from "../wire/name.ts";
import { noSections, type Answer, type Entry, type Sections } from "./answer.ts";
import { compose } from "./composer.ts";
import { Awaited, type Flattening } from "./flattening.ts";
import type { NameSpace } from "./name-space.ts";
import type { Contents, Node, Target } from "./node.ts";
import type { RRset } from "./rrset.ts";
import type { ServedZone } from "./zone.ts";

export interface Question {
  name: NameKey;
  type: number;
  /** The type, and what the client takes: `questionKind`. */
  kind: number;
  /** The client takes signatures, and a zone that has them gives them. */
  isSigned: boolean;
  /** The client knows names that do not exist by the NSEC record, and wants NXDOMAIN as well (RFC 9824 §5.1). */
  isCompactOk: boolean;
}

/** CNAMEs that are followed for one answer. */
const hopsMax = 12;
/** Answers for types above this are made each time: a client can name 65,536. */
const keptTypeMax = 300;
const keptForSigned = 1 << 16;
const keptForCompact = 1 << 17;
export const questionKind = (type: number, takesSignatures: boolean, takesCompact: boolean): number =>
  type | (takesSignatures ? keptForSigned : 0) | (takesCompact ? keptForCompact : 0);
const keptNegative = 1 << 18;
const anyTtl = 3600;
/** RFC 8482 §4.2: what ANY is answered with. */
const anySet: RRset = { type: types.HINFO, ttl: anyTtl, rdatas: [Buffer.from("\x07RFC8482\x00", "latin1")] };

/** An answer while it is made. */
interface Draft {
  question: Question;
  sections: Sections;
  rcode: number;
  isAuthoritative: boolean;
  /** It has been made of other names than the question's, too. */
  isWide: boolean;
  keepUntilMs: number;
  extendedError: number | undefined;
}

const recentMax = 200_000;

/** Finds what the zones say to a question. */
export class Lookup {
  readonly #space: NameSpace;
  readonly #flattening: Flattening;
  /** Answers that are kept at the names themselves, by kind of question and name: found without looking for the zone. */
  readonly #recent = new Map<number, Map<NameKey, Answer>>();
  #recentEpoch = -1;
  #recentCount = 0;

  constructor(space: NameSpace, flattening: Flattening) {
    this.#space = space;
    this.#flattening = flattening;
  }

  /** The answer, if it has been given since anything changed. */
  recent(name: NameKey, kind: number, nowMs: number): Answer | undefined {
    if (this.#recentEpoch !== this.#space.epoch) return undefined;
    const kept = this.#recent.get(kind)?.get(name);
    return kept !== undefined && this.#holds(kept, nowMs) ? kept : undefined;
  }

  #remember(name: NameKey, kind: number, answer: Answer): void {
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

  /** The answer, or what must be known first. */
  answer(zone: ServedZone, question: Question, nowMs: number): Answer | Awaited {
    const { name, type } = question;
    const match = zone.cutAbove(name) === undefined ? zone.match(name) : undefined;
    if (!question.isSigned && (match?.kind === "none" || match?.kind === "empty"))
      return negative(zone, match.kind === "none" ? rcodes.nameError : rcodes.noError);
    const isWildcard = match?.kind === "wildcard";
    if (match?.kind !== "node" && !(isWildcard && !question.isSigned))
      return this.#make(zone, question, nowMs);

    const { node } = match;
    // What is kept at a wildcard serves for it and for every name that it stands for.
    const forSeveral = isWildcard || (node.key.startsWith("\x01*") && !question.isSigned);
    const key = keptKey(question);
    const kept = node.answers.get(key);
    if (kept !== undefined && this.#holds(kept, nowMs)) {
      if (!forSeveral) this.#remember(name, question.kind, kept);
      return kept;
    }
    const contents = zone.contents(node);
    if (!question.isSigned && isNegative(contents, type)) return negative(zone, rcodes.noError);
    if (forSeveral && (contents.alias !== undefined || contents.flattened !== undefined))
      return this.#make(zone, question, nowMs);
    const made = this.#make(zone, question, nowMs, forSeveral);
    const isKept = !(made instanceof Awaited) && type <= keptTypeMax && contents.flattened === undefined;
    if (isKept) node.answers.set(key, made);
    return made;
  }

  #holds(kept: Answer, nowMs: number): boolean {
    return (kept.epoch === undefined || kept.epoch === this.#space.epoch) && nowMs < kept.keepUntilMs;
  }

  #make(zone: ServedZone, question: Question, nowMs: number, forSeveral = false): Answer | Awaited {
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

  /** Goes from the question's name along CNAMEs, as far as the names are ours (RFC 1034 §4.3.2). */
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
      if (next === undefined || next.facts.accountId !== zone.facts.accountId || seen.has(alias.targetKey))
        return undefined;
      zone = next;
      name = alias.targetKey;
    }
    return undefined;
  }

  /** The addresses of another name in place of a CNAME to it. */
  #flatten(
    draft: Draft,
    zone: ServedZone,
    name: NameKey,
    contents: Contents,
    flattened: Target,
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
      // The other kind of address is claimed to exist: it is looked up when it is asked for, and must not be denied before.
      const other = type === types.A ? types.AAAA : types.A;
      deny(draft, zone, name, [...contents.sets.keys(), other]);
    } else
      add(draft, draft.sections.answer, zone, name, { ...found, ttl: Math.min(found.ttl, flattened.ttl) });
    return undefined;
  }

  /** The addresses that a target leads to: from our own zones, or as they were found elsewhere. */
  addresses(
    { target, targetKey }: Target,
    type: number,
    from: ServedZone,
    nowMs: number,
    hops = 0,
  ): RRset | "failed" | Awaited {
    const none: RRset = { type, ttl: from.negativeSoa.ttl, rdatas: [] };
    if (hops > hopsMax) return "failed";
    const zone = this.#space.find(targetKey);
    if (zone === undefined || zone.facts.accountId !== from.facts.accountId || zone.cutAbove(targetKey)) {
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

const keptKey = ({ type, isSigned, isCompactOk }: Question): number =>
  questionKind(type, isSigned, isCompactOk);

const isNegative = ({ sets, alias, flattened }: Contents, type: number): boolean =>
  type !== types.ANY && !sets.has(type) && alias === undefined && flattened === undefined;

/** A negative answer without signatures: one for all names of a zone. */
function negative(zone: ServedZone, rcode: number): Answer {
  const { answers } = zone.node(zone.key)!;
  const key = keptNegative | rcode;
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

/** Adds a set, with its signature where there is to be one. */
function add(draft: Draft, section: Entry[], zone: ServedZone, owner: NameKey, set: RRset): void {
  section.push({ owner, set });
  if (!draft.question.isSigned || zone.signer === undefined) return;
  const signature = zone.signer.signature(owner, set);
  section.push({ owner, set: signature.set });
  draft.keepUntilMs = Math.min(draft.keepUntilMs, signature.keepUntilMs);
}

/** Says that a name has nothing of the type, or, without `present`, that it does not exist. */
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

/** Leads to the name servers of a zone that has been given away (RFC 1034 §4.2.1). */
function referral(draft: Draft, zone: ServedZone, cut: Node, isWholeAnswer: boolean): void {
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
