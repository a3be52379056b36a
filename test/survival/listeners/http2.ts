import type { Random } from "../../name-server/random.ts";
import { randomBytes, spoiled } from "./bytes.ts";
import { oddParts } from "./http1.ts";

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const types = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goAway: 7,
  window: 8,
};
const continuation = 9;

function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer,
  length = payload.length,
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/** The simplest HPACK (RFC 7541): every field is a literal without indexing. */
function block(fields: readonly (readonly [string, string])[]): Buffer {
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value, "latin1").subarray(0, 5000);
    const { length } = bytes;
    if (length < 127) return Buffer.concat([Buffer.from([length]), bytes]);
    const more: number[] = [];
    let rest = length - 127;
    for (; rest > 127; rest = Math.floor(rest / 128)) more.push((rest % 128) + 128);
    return Buffer.concat([Buffer.from([127, ...more, rest]), bytes]);
  };
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

const oddFields: readonly (readonly [string, string])[] = [
  ...([
    ["connection", "close"],
    ["transfer-encoding", "chunked"],
    ["te", "gzip"],
    ["host", "other.example"],
  ] as const),
  ...([
    ["content-length", "5"],
    ["content-length", "-1"],
    ["X-Upper", "a"],
    ["", "a"],
    ["a b", "c"],
  ] as const),
  ...([
    ["x", "a\r\nb: c"],
    ["x", "\0"],
    [":status", "200"],
    [":path", "/again"],
    [":x", "y"],
    [":protocol", "websocket"],
  ] as const),
  ...([
    ["cookie", "a"],
    ["cookie", "b"],
    ["expect", "100-continue"],
    ["upgrade", "websocket"],
    ["x", "y".repeat(4000)],
  ] as const),
  ...([
    ["accept", "\xff"],
    ["range", "bytes=5-2"],
    ["__proto__", "x"],
    ["content-type", "\xff"],
    ["trailer", "x"],
  ] as const),
];

function requestFields(random: Random, hosts: readonly string[]): [string, string][] {
  const fields: [string, string][] = [
    [
      ":method",
      random.chance(85)
        ? random.pick(["GET", "POST", "HEAD"])
        : random.pick(["CONNECT", "", "get", "\0", "TRACE"]),
    ],
    [":scheme", random.chance(95) ? "https" : random.pick(["http", "", "ftp", "\0"])],
    [
      ":path",
      random.chance(70) ? "/echo" : `${random.pick(["/", "", "*", "http://"])}${random.pick(oddParts)}`,
    ],
    [
      ":authority",
      random.chance(90) ? random.pick(hosts) : random.pick(["", "a b", "\xff", "[::1", "a".repeat(300)]),
    ],
  ];
  if (random.chance(10)) fields.splice(random.below(4), 1);
  if (random.chance(5)) fields.push(random.pick(fields));
  if (random.chance(5)) fields.reverse();
  for (let count = random.below(3); count > 0; count--) fields.push([...random.pick(oddFields)]);
  return fields;
}

const repeated = (count: number, one: (index: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, index) => one(index)));
const none = Buffer.alloc(0);
const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
};

/** The frames of one HTTP/2 connection, for open and unknown streams. */
export class Http2Speaker {
  readonly #random: Random;
  readonly #hosts: readonly string[];
  #last = -1;

  constructor(random: Random, hosts: readonly string[]) {
    this.#random = random;
    this.#hosts = hosts;
  }

  start(): Buffer {
    const random = this.#random;
    const settings = random.chance(80)
      ? none
      : Buffer.concat([
          number(random.pick([1, 2, 3, 4, 5, 6, 8, 99])).subarray(2),
          number(random.pick([0, 1, 2 ** 31, 2 ** 32 - 1, 16384])),
        ]);
    const whole = Buffer.concat([preface, frame(types.settings, 0, 0, settings)]);
    return random.chance(4) ? spoiled(random, whole) : whole;
  }

  message(): Buffer {
    const random = this.#random;
    const made = this.#message();
    return random.chance(10) ? spoiled(random, made) : made;
  }

  #message(): Buffer {
    const random = this.#random;
    if (random.chance(45)) return this.#request();
    const stream = random.chance(60) ? this.#known() : random.pick([0, 1, 2, 2 ** 31 - 1, 2 ** 32 - 1]);
    switch (random.below(14)) {
      case 0: // headers in very many pieces
        return Buffer.concat([
          frame(types.headers, 0, this.#next(), block(requestFields(random, this.#hosts))),
          repeated(random.pick([3, 400]), () =>
            frame(continuation, 0, this.#last, random.chance(50) ? none : block([["x", "y".repeat(50)]])),
          ),
        ]);
      case 1: // rapid resets
        return repeated(random.pick([5, 300]), () =>
          Buffer.concat([this.#plain(), frame(types.reset, 0, this.#last, number(8))]),
        );
      case 2:
        return frame(types.window, 0, stream, number(random.pick([0, 1, 2 ** 31 - 1, 2 ** 32 - 1])));
      case 3:
        return repeated(random.pick([1, 500]), () =>
          frame(
            types.ping,
            random.below(2),
            random.chance(95) ? 0 : stream,
            Buffer.alloc(random.chance(95) ? 8 : 7),
          ),
        );
      case 4:
        return repeated(random.pick([1, 500]), () =>
          frame(
            types.settings,
            random.chance(90) ? 0 : 1,
            0,
            Buffer.from([0, random.below(9), ...number(random.below(2 ** 31))]),
          ),
        );
      case 5:
        return repeated(random.pick([1, 500]), () => frame(types.data, 0, stream, none));
      case 6:
        return frame(types.data, random.pick([0, 1, 8, 9]), stream, randomBytes(random, random.below(200)));
      case 7: // more than the window allows
        return repeated(8, () => frame(types.data, 0, stream, Buffer.alloc(16_384)));
      case 8:
        return frame(
          types.priority,
          0,
          stream,
          Buffer.concat([number(random.chance(50) ? stream : this.#known()), Buffer.from([255])]),
        );
      case 9:
        return frame(
          types.headers,
          random.pick([4, 5, 0x24, 0x0c, 0xff]),
          this.#next(),
          randomBytes(random, random.below(100)),
        );
      case 10: // sizes of the table of fields, and references into it
        return frame(
          types.headers,
          5,
          this.#next(),
          Buffer.from(
            random.pick([
              [0x3f, 0xe1, 0xff, 0xff, 0xff, 0x7f],
              [0xff, 0xff, 0xff, 0xff, 0xff],
              [0x80],
              [0x20, 0x20, 0x20],
              [0xbe],
            ]),
          ),
        );
      case 11: // trailers
        return Buffer.concat([
          frame(types.headers, 4, this.#next(), block(requestFields(random, this.#hosts))),
          frame(types.data, 0, this.#last, Buffer.from("body")),
          frame(types.headers, random.pick([4, 5]), this.#last, block([[...random.pick(oddFields)]])),
        ]);
      case 12:
        return frame(
          random.pick([types.push, types.goAway, continuation, 10, 200]),
          random.below(256),
          stream,
          randomBytes(random, random.below(60)),
        );
      default: // declares a wrong length
        return frame(
          random.below(10),
          random.below(256),
          stream,
          randomBytes(random, random.below(60)),
          random.pick([0, 1, 16_385, 0xff_ffff]),
        );
    }
  }

  #request(): Buffer {
    const random = this.#random;
    const hasBody = random.chance(30);
    const head = frame(
      types.headers,
      hasBody ? 4 : 5,
      this.#next(),
      block(requestFields(random, this.#hosts)),
    );
    return hasBody
      ? Buffer.concat([head, frame(types.data, random.chance(85) ? 1 : 0, this.#last, Buffer.from("body"))])
      : head;
  }

  #plain(): Buffer {
    const fields = [
      [":method", "GET"],
      [":scheme", "https"],
      [":path", "/echo"],
      [":authority", this.#hosts[0]!],
    ] as const;
    return frame(types.headers, 5, this.#next(), block(fields));
  }

  #next(): number {
    this.#last += this.#random.chance(97) ? 2 : this.#random.pick([0, 1, 4]);
    return Math.max(this.#last, 0);
  }

  #known(): number {
    return Math.max(1, this.#last - 2 * this.#random.below(4));
  }
}
