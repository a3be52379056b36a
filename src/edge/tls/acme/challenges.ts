import type { EdgeHandler } from "../../request/handlers.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import * as store from "./store.ts";
import type { Challenge } from "./store.ts";
import { clock } from "../../../platform/timers/clock.ts";

export const challengePath = "/.well-known/acme-challenge/";
const staleMs = 24 * 3_600_000;

/** Pending ACME challenges, which every node of the installation can answer. */
export class Challenges {
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  async publish(challenge: Challenge): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.removeStaleChallenges(trx, clock.now() - staleMs);
      await store.insertChallenge(trx, challenge);
      if (challenge.kind === "dns")
        changed({ kind: "acme_challenge", id: challenge.name, parentId: challenge.zoneId });
    });
  }

  async withdraw(challenge: Challenge): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.removeChallenge(trx, challenge.token);
      if (challenge.kind === "dns")
        changed({ kind: "acme_challenge", id: challenge.name, parentId: challenge.zoneId });
    });
  }

  async find(token: string, host: string): Promise<{ zoneId: string; value: string } | undefined> {
    return store.findHttpChallenge(this.#storage.read, token, host);
  }
}

/**
 * Answers HTTP challenges at hosts of the account that requested the certificate. Other challenge requests go
 * to the origin, which may have its own.
 */
export function challengeHandler(
  challenges: Challenges,
  accountOf: (zoneId: string) => string | undefined,
): EdgeHandler {
  return async ({ request, response, host, path, zone, ray }) => {
    if (zone === undefined || !path.startsWith(challengePath)) return false;
    const token = path.slice(challengePath.length);
    const found = /^[\w-]{16,200}$/.test(token) ? await challenges.find(token, host) : undefined;
    if (found === undefined || accountOf(found.zoneId) !== zone.configuration?.accountId) return false;
    const { value } = found;
    request.resume();
    response.writeHead(200, [
      "content-type",
      "application/octet-stream",
      "content-length",
      String(value.length),
      "cf-ray",
      ray,
    ]);
    response.end(value);
    return true;
  };
}
