import { classes, headerBytes, messageBytesMax, types } from "../wire/constants.ts";
import { parentOf, rootName, type NameKey } from "../wire/name.ts";
import type { Answer, Entry, Sections } from "./answer.ts";
import { compressibleAt } from "./rrset.ts";

/** More than a message of 64 KiB holds. */
export class TooLarge extends Error {}

const pointer = 0xc000;
/** How far a pointer reaches, in its 14 bits. */
const pointerMax = 0x3fff;
const pointerToQuestion = pointer | headerBytes;
const scratch = Buffer.allocUnsafe(messageBytesMax);

/**
 * The bytes of the sections behind a question for `question`, names compressed. When they are to serve for several
 * questions, as a wildcard's do, nothing points into the question but owners that are the question's own name.
 */
export function compose(
  sections: Sections,
  question: NameKey,
  forSeveral: boolean,
): Pick<Answer, "body" | "answers" | "authorities" | "additionals"> {
  const composer = new Composer(question, forSeveral);
  const answers = composer.section(sections.answer);
  const authorities = composer.section(sections.authority);
  const additionals = composer.section(sections.additional);
  return { answers, authorities, additionals, body: composer.body() };
}

class Composer {
  readonly #question: NameKey;
  readonly #start: number;
  #at: number;
  /** Where names stand already; none when their places depend on the question. */
  readonly #places: Map<NameKey, number> | undefined;

  constructor(question: NameKey, forSeveral: boolean) {
    this.#question = question;
    this.#start = headerBytes + question.length + 4;
    this.#at = this.#start;
    if (forSeveral) return;
    this.#places = new Map();
    for (let [name, at] = [question, headerBytes]; name !== rootName; name = parentOf(name)) {
      this.#places.set(name, at);
      at += 1 + name.charCodeAt(0);
    }
  }

  body(): Buffer {
    return Buffer.from(scratch.subarray(this.#start, this.#at));
  }

  /** Returns how many records the entries are. */
  section(entries: readonly Entry[]): number {
    let count = 0;
    for (const { owner, set } of entries) {
      for (const rdata of set.rdatas) this.#record(owner, set.type, set.ttl, rdata);
      count += set.rdatas.length;
    }
    return count;
  }

  #record(owner: NameKey, type: number, ttl: number, rdata: Buffer): void {
    // A name that is not compressed is never longer than in `rdata`, so this is all the room that is needed.
    if (this.#at + owner.length + 10 + rdata.length > messageBytesMax) throw new TooLarge();
    if (owner === this.#question) this.#at = scratch.writeUInt16BE(pointerToQuestion, this.#at);
    else this.#name(owner);
    this.#at = scratch.writeUInt16BE(type, this.#at);
    this.#at = scratch.writeUInt16BE(classes.IN, this.#at);
    this.#at = scratch.writeUInt32BE(ttl, this.#at);
    const lengthAt = this.#at;
    this.#at += 2;
    const nameAt = compressibleAt(type);
    if (type === types.SOA) this.#soa(rdata);
    else if (nameAt >= 0) {
      this.#at += rdata.copy(scratch, this.#at, 0, nameAt);
      this.#name(rdata.toString("latin1", nameAt));
    } else this.#at += rdata.copy(scratch, this.#at);
    scratch.writeUInt16BE(this.#at - lengthAt - 2, lengthAt);
  }

  #soa(rdata: Buffer): void {
    const second = rdata.indexOf(0) + 1;
    const numbers = rdata.indexOf(0, second) + 1;
    this.#name(rdata.toString("latin1", 0, second));
    this.#name(rdata.toString("latin1", second, numbers));
    this.#at += rdata.copy(scratch, this.#at, numbers);
  }

  #name(name: NameKey): void {
    let rest = name;
    while (rest !== rootName) {
      const place = this.#places?.get(rest);
      if (place !== undefined) {
        this.#at = scratch.writeUInt16BE(pointer | place, this.#at);
        return;
      }
      if (this.#at <= pointerMax) this.#places?.set(rest, this.#at);
      const length = 1 + rest.charCodeAt(0);
      this.#at += scratch.write(rest.slice(0, length), this.#at, "latin1");
      rest = rest.slice(length);
    }
    scratch[this.#at++] = 0;
  }
}
