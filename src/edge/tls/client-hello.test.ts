import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { helloRecordBytes, parseHello } from "./client-hello.ts";

const word = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
const words = (values: readonly number[]): Buffer => Buffer.concat(values.map(word));
const counted = (bytes: Buffer): Buffer => Buffer.concat([word(bytes.length), bytes]);

interface Offer {
  version?: number;
  ciphers: number[];
  extensions: [type: number, data: Buffer][];
}
const random = Buffer.alloc(32, 7);
function record({ version = 0x0303, ciphers, extensions }: Offer): Buffer {
  const encoded = extensions.map(([type, data]) => Buffer.concat([word(type), counted(data)]));
  const body = Buffer.concat([
    word(version),
    random,
    Buffer.from([0]),
    counted(words(ciphers)),
    Buffer.from([1, 0]),
    counted(Buffer.concat(encoded)),
  ]);
  const message = Buffer.concat([Buffer.from([1, 0]), counted(body)]);
  return Buffer.concat([Buffer.from([22, 3, 1]), counted(message)]);
}

const grease = 0x1a1a;
/** Chrome's ClientHello from the publication of JA4, with the fingerprint given there. */
const chrome: Offer = {
  ciphers: [
    grease,
    0x1301,
    0x1302,
    0x1303,
    0xc02b,
    0xc02f,
    0xc02c,
    0xc030,
    0xcca9,
    0xcca8,
    0xc013,
    0xc014,
    0x009c,
    0x009d,
    0x002f,
    0x0035,
  ],
  extensions: [
    [0x2a2a, Buffer.alloc(0)],
    [0x0000, Buffer.from("0009000006612e74657374", "hex")],
    [0x0017, Buffer.alloc(0)],
    [0xff01, Buffer.from([0])],
    [0x000a, counted(words([0x3a3a, 0x001d, 0x0017, 0x0018]))],
    [0x000b, Buffer.from([1, 0])],
    [0x0023, Buffer.alloc(0)],
    [0x0010, counted(Buffer.from("\x02h2\x08http/1.1"))],
    [0x0005, Buffer.from("0100000000", "hex")],
    [0x000d, counted(words([0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601]))],
    [0x0012, Buffer.alloc(0)],
    [0x0033, counted(Buffer.alloc(4))],
    [0x002d, Buffer.from([1, 1])],
    [0x002b, Buffer.concat([Buffer.from([6]), words([0x4a4a, 0x0304, 0x0303])])],
    [0x001b, Buffer.from([2, 0, 2])],
    [0x4469, Buffer.alloc(0)],
    [0x0015, Buffer.alloc(10)],
  ],
};

it("computes fingerprints", () => {
  const hello = parseHello(record(chrome))!;
  expect(hello.ja4).toBe("t13d1516h2_8daaf6152771_e5627efa2ab1");
  const ja3 =
    "771,4865-4866-4867-49195-49199-49196-49200-52393-52392-49171-49172-156-157-47-53," +
    "0-23-65281-10-11-35-16-5-13-18-51-45-43-27-17513-21,29-23-24,0";
  expect(hello.ja3).toBe(createHash("md5").update(ja3).digest("hex"));
});

it("returns the values of the message", () => {
  const bytes = record(chrome);
  const hello = parseHello(bytes)!;
  expect(hello.length).toBe(bytes.length - 5);
  expect(hello.random).toEqual(random);
  const sha1 = (data: Buffer): string => createHash("sha1").update(data).digest("base64");
  expect(hello.ciphersSha1).toBe(sha1(words(chrome.ciphers)));
  const types = words(chrome.extensions.map(([type]) => type));
  expect(hello.extensionsSha1).toBe(sha1(types));
  expect(hello.extensionsSha1Le).toBe(sha1(Buffer.from(types).swap16()));
});

it.each<[what: string, offer: Offer, ja4: RegExp]>([
  ["nothing", { ciphers: [], extensions: [] }, /^t12i000000_0{12}_0{12}$/],
  [
    "an old version",
    { version: 0x0301, ciphers: [0x002f], extensions: [] },
    /^t10i010000_[0-9a-f]{12}_0{12}$/,
  ],
  [
    "a protocol with an odd name",
    { ciphers: [0x1301], extensions: [[0x0010, counted(Buffer.from([2, 0xab, 0xcd]))]] },
    /^t12i0101ad_/,
  ],
])("fingerprints %s", (_what, offer, ja4) => {
  expect(parseHello(record(offer))!.ja4).toMatch(ja4);
});

it("never reads past the end, even with wrong lengths in the message", () => {
  const whole = record(chrome);
  for (let length = 0; length < whole.length; length++)
    expect(parseHello(whole.subarray(0, length))).toBeUndefined();
  for (let at = 5; at < whole.length; at++) {
    const bent = Buffer.from(whole);
    bent[at] = 255;
    expect(() => parseHello(bent)).not.toThrow();
  }
});

it("detects when the record is complete, and when it is not TLS", () => {
  expect(helloRecordBytes(Buffer.alloc(0))).toBeUndefined();
  expect(helloRecordBytes(Buffer.from([22, 3, 1]))).toBeUndefined();
  expect(helloRecordBytes(Buffer.from([22, 3, 1, 2, 0]))).toBe(5 + 512);
  expect(helloRecordBytes(Buffer.from("GET / HTTP/1.1"))).toBe(0);
  expect(helloRecordBytes(Buffer.from([22, 3, 1, 255, 255]))).toBe(0);
});
