import { timingSafeEqual } from "node:crypto";
import { sipHash24 } from "./siphash.ts";
import { addressBytes } from "./wire/address.ts";

const version = 1;
const validSeconds = 3600;
const renewSeconds = 1800;
const futureSeconds = 300;

export interface CookieCheck {
  /** Whether the client sent a cookie that we issued to its address. */
  isValid: boolean;
  /** The client's part and our part, for the response. */
  answer: Buffer;
}

/** DNS cookies (RFC 7873) that all servers with the same secret can issue and check (RFC 9018). */
export class Cookies {
  readonly #secret: Buffer;

  /** `secret` has 16 bytes. */
  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  check(cookie: Buffer, address: string, nowMs: number): CookieCheck {
    const nowSeconds = Math.floor(nowMs / 1000);
    const client = cookie.subarray(0, 8);
    const server = cookie.subarray(8);
    if (server.length === 16 && server[0] === version) {
      const head = server.subarray(0, 8); // includes the reserved bytes, which are signed too
      const age = (nowSeconds - head.readUInt32BE(4)) | 0; // serial arithmetic (RFC 1982)
      const isTimely = age <= validSeconds && age >= -futureSeconds;
      if (isTimely && timingSafeEqual(this.#make(client, address, head), server)) {
        return {
          isValid: true,
          answer: age < renewSeconds ? cookie : this.#whole(client, address, nowSeconds),
        };
      }
    }
    return { isValid: false, answer: this.#whole(client, address, nowSeconds) };
  }

  #whole(client: Buffer, address: string, seconds: number): Buffer {
    const head = Buffer.alloc(8);
    head[0] = version;
    head.writeUInt32BE(seconds >>> 0, 4);
    return Buffer.concat([client, this.#make(client, address, head)]);
  }

  #make(client: Buffer, address: string, head: Buffer): Buffer {
    const hash = sipHash24(this.#secret, Buffer.concat([client, head, addressBytes(address)]));
    return Buffer.concat([head, hash]);
  }
}
