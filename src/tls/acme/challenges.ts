import type { EdgeHandler } from "../../edge/handlers.ts";
import type { Storage } from "../../storage/storage.ts";
import * as store from "./store.ts";
import type { Challenge } from "./store.ts";

export const challengePath = "/.well-known/acme-challenge/";
const staleMs = 24 * 3_600_000;

/** What authorities want to see, where every node of the installation can show it. */
export class Challenges {
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  async publish(challenge: Challenge): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.removeStaleChallenges(trx, Date.now() - staleMs);
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

  async find(token: string): Promise<string | undefined> {
    return store.findHttpChallenge(this.#storage.read, token);
  }
}

/** Answers authorities that ask over HTTP. What is not asked of us may be asked of the origin, which then answers. */
export function challengeHandler(challenges: Challenges): EdgeHandler {
  return async ({ request, response, path, zone, ray }) => {
    if (zone === undefined || !path.startsWith(challengePath)) return false;
    const token = path.slice(challengePath.length);
    const value = /^[\w-]{16,200}$/.test(token) ? await challenges.find(token) : undefined;
    if (value === undefined) return false;
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
