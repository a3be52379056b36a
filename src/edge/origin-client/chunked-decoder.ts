import { fieldsPattern, parseHeaders } from "./response-head.ts";
import { ResponseError } from "./exchange.ts";

type State = "size" | "extension" | "size line feed" | "data" | "data end" | "data line feed" | "trailers";

const carriageReturn = 0x0d;
const lineFeed = 0x0a;
const semicolon = 0x3b;
/** 13 hexadecimal digits are less than 2^53. */
const sizeDigitsMax = 13;
const extensionBytesMax = 16 * 1024;

/** Extensions of a chunk, which have no meaning here (RFC 9112, 7.1.1). */
const extensionPattern =
  /^(?:;[!#$%&'*+\-.^_`|~\dA-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~\dA-Za-z]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)*$/;

/** Decodes a chunked body (RFC 9112, 7.1), however its bytes are split. */
export class ChunkedDecoder {
  readonly #trailerBytesMax: number;
  #state: State = "size";
  #size = 0;
  #digits = 0;
  /** Bytes of extensions in the whole body. */
  #extensionBytes = 0;
  #extension = "";
  #text = "";
  /** After `read`: the start of the data that end at the returned position. If both are equal, there are none. */
  dataFrom = 0;
  /** Names and values in turn, once the body has ended. */
  trailers: readonly string[] | undefined;

  constructor(trailerBytesMax: number) {
    this.#trailerBytesMax = trailerBytesMax;
  }

  /** Reads up to the end of a piece of data, the end of the body, or the last byte. Returns the position behind it. */
  read(bytes: Buffer, from: number, length: number): number {
    let at = from;
    while (at < length) {
      if (this.#state === "data") {
        const to = Math.min(length, at + this.#size);
        this.#size -= to - at;
        if (this.#size === 0) this.#state = "data end";
        this.dataFrom = at;
        return to;
      }
      if (this.#state === "trailers") {
        at = this.#readTrailers(bytes, at, length);
        break;
      }
      this.#step(bytes[at++]!);
    }
    this.dataFrom = at;
    return at;
  }

  /** Reads a byte of a chunk's frame. */
  #step(byte: number): void {
    switch (this.#state) {
      case "size":
        return this.#readSize(byte);
      case "extension":
        if (byte !== carriageReturn) {
          if (++this.#extensionBytes > extensionBytesMax) throw malformed();
          this.#extension += String.fromCharCode(byte);
        } else if (extensionPattern.test(this.#extension)) this.#state = "size line feed";
        else throw malformed();
        return;
      case "size line feed":
        if (byte !== lineFeed) throw malformed();
        this.#digits = 0;
        this.#state = this.#size === 0 ? "trailers" : "data";
        return;
      case "data end":
        if (byte !== carriageReturn) throw malformed();
        this.#state = "data line feed";
        return;
      default:
        if (byte !== lineFeed) throw malformed();
        this.#state = "size";
    }
  }

  #readSize(byte: number): void {
    const digit = digitOf(byte);
    if (digit >= 0 && this.#digits < sizeDigitsMax) {
      this.#size = this.#size * 16 + digit;
      this.#digits++;
    } else if (this.#digits > 0 && byte === carriageReturn) this.#state = "size line feed";
    else if (this.#digits > 0 && byte === semicolon) {
      this.#extension = ";";
      this.#state = "extension";
    } else throw malformed();
  }

  #readTrailers(bytes: Buffer, from: number, length: number): number {
    const before = this.#text.length;
    this.#text += bytes.toString("latin1", from, Math.min(length, from + this.#trailerBytesMax + 4 - before));
    if (this.#text.startsWith("\r\n")) {
      this.trailers = [];
      return from + 2 - before;
    }
    const end = this.#text.indexOf("\r\n\r\n", Math.max(0, before - 3));
    if (end < 0) {
      if (this.#text.length > this.#trailerBytesMax)
        throw new ResponseError("the trailers of the answer are too large");
      return length;
    }
    const section = this.#text.slice(0, end + 2);
    if (!fieldsPattern.test(section))
      throw new ResponseError("the trailers of the answer are not valid HTTP");
    this.trailers = parseHeaders(section, 0);
    if (this.trailers.some((name, i) => i % 2 === 0 && framing.test(name))) throw malformed();
    return from + end + 4 - before;
  }
}

const framing = /^(?:content-length|transfer-encoding)$/i;

const malformed = (): ResponseError =>
  new ResponseError("the chunks of the answer are not valid HTTP (RFC 9112)");

function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
