import { randomBytes } from "node:crypto";
import { sameHash } from "../access/secret.ts";
import type { ApiToken } from "../tokens/tokens.ts";
import { clock } from "../../platform/timers/clock.ts";

/** How long a printed link signs in. */
const codeMs = 600_000;

/** Codes of single-use sign-in links. They are kept only in memory, so a restart invalidates them. */
export class StartCodes {
  readonly #hash: (secret: string) => string;
  #code: { hash: string; token: ApiToken; endsOn: number; isUsed: boolean } | undefined;

  /** `hash` is the installation's keyed hash. */
  constructor(hash: (secret: string) => string) {
    this.#hash = hash;
  }

  /** Makes a code for a token. Only the newest code is valid. */
  make(token: ApiToken): string {
    const code = randomBytes(24).toString("base64url");
    this.#code = { hash: this.#hash(code), token, endsOn: clock.now() + codeMs, isUsed: false };
    return code;
  }

  /** Redeems a code: returns its token, or the reason for refusing the code. */
  take(code: string): ApiToken | "used" | "expired" | "unknown" {
    const known = this.#code;
    if (known === undefined || !sameHash(known.hash, this.#hash(code))) return "unknown";
    if (known.isUsed) return "used";
    if (known.endsOn <= clock.now()) return "expired";
    known.isUsed = true;
    return known.token;
  }
}
