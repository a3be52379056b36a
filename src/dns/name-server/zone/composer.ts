import { classes, headerBytes, messageBytesMax, types } from "../wire/constants.ts";
import { parentOf, rootName, type NameKey } from "../wire/name.ts";
import type { DnsAnswer, AnswerEntry, Sections } from "./answer.ts";
import { compressibleAt } from "./rrset.ts";

/** The records do not fit into a message of 64 KiB. */
export class TooLarge extends Error {}

const pointer = 0xc000;
/** The largest offset of a pointer, which has 14 bits. */
const pointerMax = 0x3fff;
const pointerToQuestion = pointer | headerBytes;
const scratch = Buffer.allocUnsafe(messageBytesMax);

/**
 * The bytes of the sections after the question, with compressed names. If they are for several questions, as
 * with a wildcard, only owners equal to the question's name point into the question. Throws TooLarge.
 */
export function compose(
  sections: Sections,
  question: NameKey,
  forSeveral: boolean,
): Pick<DnsAnswer, "body" | "answers" | "authorities" | "additionals"> {
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
  /** Offsets of names already written; undefined if the offsets depend on the question. */
  readonly #offsets: Map<NameKey, number> | undefined;

  constructor(question: NameKey, forSeveral: boolean) {
    this.#question = question;
    this.#start = headerBytes + question.length + 4;
    this.#at = this.#start;
    if (forSeveral) return;
    this.#offsets = new Map();
    for (let [name, at] = [question, headerBytes]; name !== rootName; name = parentOf(name)) {
      this.#offsets.set(name, at);
      at += 1 + name.charCodeAt(0);
    }
  }

  body(): Buffer {
    return Buffer.from(scratch.subarray(this.#start, this.#at));
  }

  /** Writes entries and returns the number of records. */
  section(entries: readonly AnswerEntry[]): number {
    let count = 0;
    for (const { owner, set } of entries) {
      for (const rdata of set.rdatas) this.#record(owner, set.type, set.ttl, rdata);
      count += set.rdatas.length;
    }
    return count;
  }

  #record(owner: NameKey, type: number, ttl: number, rdata: Buffer): void {
    // Compression never makes a name longer than in `rdata`, so this is enough space.
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
      const offset = this.#offsets?.get(rest);
      if (offset !== undefined) {
        this.#at = scratch.writeUInt16BE(pointer | offset, this.#at);
        return;
      }
      if (this.#at <= pointerMax) this.#offsets?.set(rest, this.#at);
      const length = 1 + rest.charCodeAt(0);
      this.#at += scratch.write(rest.slice(0, length), this.#at, "latin1");
      rest = rest.slice(length);
    }
    scratch[this.#at++] = 0;
  }
}
