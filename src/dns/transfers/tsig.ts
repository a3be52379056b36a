import { createHmac, timingSafeEqual } from "node:crypto";
import { ByteWriter } from "../name-server/wire/byte-writer.ts";
import { classes, rcodes, types } from "../name-server/wire/constants.ts";
import { endOfName, nameBytes, nameKey, type NameKey } from "../name-server/wire/name.ts";
import { lowerName } from "../name-server/wire/query.ts";

/** A shared secret for signing messages (RFC 8945). */
export interface TransferKey {
  id: string;
  name: NameKey;
  algorithm: TransferAlgorithm;
  /** Base64. */
  secret: string;
}

/** Digest names by algorithm name, which in the API and the DNS has a final dot. */
export const transferAlgorithms = {
  "hmac-sha1.": "sha1",
  "hmac-sha224.": "sha224",
  "hmac-sha256.": "sha256",
  "hmac-sha384.": "sha384",
  "hmac-sha512.": "sha512",
} as const;
export type TransferAlgorithm = keyof typeof transferAlgorithms;

export const tsigErrors = { badSignature: 16, badKey: 17, badTime: 18 } as const;

const fudgeSeconds = 300;
/** Size of a TSIG record without the names and the MAC. */
const fixedBytes = 26;
const timeBytes = 6;
const timersBytes = timeBytes + 2;

/** The fields of a TSIG record. */
interface Received {
  keyName: NameKey;
  algorithmName: NameKey;
  timeSeconds: number;
  fudgeSeconds: number;
  mac: Buffer;
  originalId: number;
  error: number;
  other: Buffer;
}

/** The result of checking a signed request. */
export interface TsigCheck {
  /** The key, if the signature is valid. */
  key: TransferKey | undefined;
  signer: AnswerSigner;
}

/** Checks the signature of a request. Undefined if its TSIG record is malformed. */
export function verifyTsig(
  message: Buffer,
  tsigAt: number,
  end: number,
  keysNamed: (name: NameKey) => readonly TransferKey[],
  nowSeconds: number,
): TsigCheck | undefined {
  const received = readTsig(message, tsigAt, end);
  if (received === undefined) return undefined;
  const { keyName, algorithmName, mac } = received;
  const candidates = keysNamed(keyName).filter(
    ({ algorithm }) => nameKey(dotless(algorithm)) === algorithmName,
  );
  const fail = (error: number, key?: TransferKey): TsigCheck => ({
    key: undefined,
    signer: new AnswerSigner(received, key, error, nowSeconds),
  });
  if (candidates.length === 0) return fail(tsigErrors.badKey);
  const key = candidates.find((each) =>
    matches(mac, macOf(each, [unsigned(message, tsigAt, received.originalId), variables(received)])),
  );
  if (key === undefined) return fail(tsigErrors.badSignature);
  if (Math.abs(nowSeconds - received.timeSeconds) > received.fudgeSeconds)
    return fail(tsigErrors.badTime, key);
  return { key, signer: new AnswerSigner(received, key, rcodes.noError, nowSeconds) };
}

/** Signs the messages of one response. Each signature covers the previous one (RFC 8945 §5.3.1). */
export class AnswerSigner {
  /** The error code for the header if the request's signature was rejected; else noError. */
  readonly error: number;
  readonly #request: Received;
  readonly #key: TransferKey | undefined;
  readonly #other: Buffer;
  readonly #timeSeconds: number;
  #priorMac: Buffer;
  #isFirst = true;

  constructor(request: Received, key: TransferKey | undefined, error: number, nowSeconds: number) {
    this.error = error;
    this.#request = request;
    this.#key = key;
    const isLate = error === tsigErrors.badTime;
    this.#timeSeconds = isLate ? request.timeSeconds : nowSeconds;
    this.#other = isLate ? new ByteWriter().uint48(nowSeconds).done() : Buffer.alloc(0);
    this.#priorMac = request.mac;
  }

  /** The bytes that a signature adds to a message. */
  get length(): number {
    const { keyName, algorithmName } = this.#request;
    const macBytes = this.#key === undefined ? 0 : macOf(this.#key, []).length;
    return keyName.length + algorithmName.length + fixedBytes + macBytes + this.#other.length;
  }

  sign(message: Buffer): Buffer {
    const { keyName, algorithmName } = this.#request;
    const fields: Received = {
      keyName,
      algorithmName,
      timeSeconds: this.#timeSeconds,
      fudgeSeconds,
      mac: Buffer.alloc(0),
      originalId: message.readUInt16BE(0),
      error: this.error,
      other: this.#other,
    };
    if (this.#key !== undefined) {
      const prior = new ByteWriter().uint16(this.#priorMac.length).bytes(this.#priorMac).done();
      const tail = this.#isFirst ? variables(fields) : timers(fields);
      fields.mac = macOf(this.#key, [prior, message, tail]);
      this.#priorMac = fields.mac;
    }
    this.#isFirst = false;
    return withTsig(message, fields);
  }
}

/** Signs a request. */
export function signRequest(message: Buffer, key: TransferKey, nowSeconds: number): Buffer {
  const fields: Received = {
    keyName: key.name,
    algorithmName: nameKey(dotless(key.algorithm)),
    timeSeconds: nowSeconds,
    fudgeSeconds,
    mac: Buffer.alloc(0),
    originalId: message.readUInt16BE(0),
    error: 0,
    other: Buffer.alloc(0),
  };
  return withTsig(message, { ...fields, mac: macOf(key, [message, variables(fields)]) });
}

const dotless = (name: string): string => name.slice(0, -1);

const macOf = ({ algorithm, secret }: TransferKey, parts: readonly Buffer[]): Buffer => {
  const hmac = createHmac(transferAlgorithms[algorithm], Buffer.from(secret, "base64"));
  for (const part of parts) hmac.update(part);
  return hmac.digest();
};

const matches = (received: Buffer, expected: Buffer): boolean =>
  received.length === expected.length && timingSafeEqual(received, expected);

/** The message before it was signed. */
function unsigned(message: Buffer, tsigAt: number, originalId: number): Buffer {
  const bytes = Buffer.from(message.subarray(0, tsigAt));
  bytes.writeUInt16BE(originalId, 0);
  bytes.writeUInt16BE(bytes.readUInt16BE(10) - 1, 10);
  return bytes;
}

/** The TSIG variables of RFC 8945 §4.3.3, which the signature covers. */
const variables = (fields: Received): Buffer =>
  new ByteWriter()
    .latin1(fields.keyName)
    .uint16(classes.ANY)
    .uint32(0)
    .latin1(fields.algorithmName)
    .bytes(timers(fields))
    .uint16(fields.error)
    .uint16(fields.other.length)
    .bytes(fields.other)
    .done();

const timers = (fields: Received): Buffer =>
  new ByteWriter().uint48(fields.timeSeconds).uint16(fields.fudgeSeconds).done();

function withTsig(message: Buffer, fields: Received): Buffer {
  const { keyName, algorithmName, mac, other } = fields;
  const record = new ByteWriter()
    .bytes(nameBytes(keyName))
    .uint16(types.TSIG)
    .uint16(classes.ANY)
    .uint32(0)
    .uint16(algorithmName.length + timersBytes + 8 + mac.length + other.length)
    .bytes(nameBytes(algorithmName))
    .bytes(timers(fields))
    .uint16(mac.length)
    .bytes(mac)
    .uint16(fields.originalId)
    .uint16(fields.error)
    .uint16(other.length)
    .bytes(other)
    .done();
  const signed = Buffer.concat([message, record]);
  signed.writeUInt16BE(signed.readUInt16BE(10) + 1, 10);
  return signed;
}

function readTsig(message: Buffer, at: number, end: number): Received | undefined {
  const ownerEnd = endOfName(message, at, end);
  if (ownerEnd < 0) return undefined;
  const rdataAt = ownerEnd + 10;
  const algorithmEnd = endOfName(message, rdataAt, end);
  const macAt = algorithmEnd + timersBytes + 2;
  if (algorithmEnd < 0 || macAt > end) return undefined;
  const macEnd = macAt + message.readUInt16BE(macAt - 2);
  if (macEnd + 6 > end || macEnd + 6 + message.readUInt16BE(macEnd + 4) !== end) return undefined;
  return {
    keyName: lowerName(message, at, ownerEnd),
    algorithmName: lowerName(message, rdataAt, algorithmEnd),
    timeSeconds: message.readUIntBE(algorithmEnd, timeBytes),
    fudgeSeconds: message.readUInt16BE(algorithmEnd + timeBytes),
    mac: Buffer.from(message.subarray(macAt, macEnd)),
    originalId: message.readUInt16BE(macEnd),
    error: message.readUInt16BE(macEnd + 2),
    other: Buffer.from(message.subarray(macEnd + 6, end)),
  };
}
