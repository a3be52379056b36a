import { Agent } from "node:https";
import { readFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import type { Client } from "acme-client";
import type { Storage } from "../../../platform/storage/storage.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import type { CertificatePack } from "../certificates/packs.ts";
import type { KeyPair } from "../certificates/x509.ts";
import type { Challenges } from "./challenges.ts";
import * as store from "./store.ts";
import type { Challenge } from "./store.ts";

export interface AcmeOptions {
  /** URL of the authority's directory (RFC 8555, 7.1.1). */
  directory: string;
  email: string | undefined;
  /** File with a CA certificate in PEM for the directory's own TLS, in addition to those of Node. */
  ca: string | undefined;
  /** External account binding (RFC 8555, 7.3.4). */
  externalAccount: { kid: string; hmacKey: string } | undefined;
}

const requestTimeoutMs = 30_000;
const reasonCharactersMax = 1000;
/** Other nodes apply a configuration change within a second. */
const otherNodesMs = 1500;

/** An ACME certificate authority and this installation's account there. */
export class AcmeAuthority {
  readonly #options: AcmeOptions;
  readonly #storage: Storage;
  readonly #challenges: Challenges;
  #client: Promise<Client> | undefined;

  constructor(options: AcmeOptions, storage: Storage, challenges: Challenges) {
    this.#options = options;
    this.#storage = storage;
    this.#challenges = challenges;
  }

  /** Issues a certificate with a new key for the pack's hosts. Rejects with the authority's error. */
  async issue(zone: Zone, pack: CertificatePack): Promise<KeyPair> {
    const { crypto } = await import("acme-client");
    const client = await this.#account();
    const [privateKey, csr] = await crypto.createCsr(
      { commonName: pack.hosts[0]!, altNames: [...pack.hosts] },
      await crypto.createPrivateEcdsaKey(),
    );
    const type = pack.validationMethod === "txt" ? "dns-01" : "http-01";
    const certificate = await client.auto({
      csr,
      termsOfServiceAgreed: true,
      // The client's own check queries the public DNS, whose names may not resolve from here. Our servers
      // answer as soon as the challenge is written.
      skipChallengeVerification: true,
      challengePriority: [type],
      challengeCreateFn: async (authorization, offered, value) => {
        if (offered.type !== type)
          throw new Error(`The authority does not validate ${authorization.identifier.value} by ${type}`);
        await this.#challenges.publish(challengeOf(zone, authorization, offered, value));
        if (this.#storage.engine === "postgres")
          await new Promise((resolve) => setTimeout(resolve, otherNodesMs));
      },
      challengeRemoveFn: async (authorization, offered, value) =>
        this.#challenges.withdraw(challengeOf(zone, authorization, offered, value)),
    });
    return { certificate, privateKey: privateKey.toString() };
  }

  /** The account, registered on first use. A failure is retried with the next certificate. */
  #account(): Promise<Client> {
    this.#client ??= this.#register().catch((error: unknown) => {
      this.#client = undefined;
      throw error;
    });
    return this.#client;
  }

  /** Forgets the account, because an authority may lose it. */
  forgetAccount(): void {
    this.#client = undefined;
  }

  async #register(): Promise<Client> {
    const { axios, Client, crypto } = await import("acme-client");
    const { directory: directoryUrl, email, ca, externalAccount } = this.#options;
    axios.defaults.timeout = requestTimeoutMs;
    if (ca !== undefined)
      axios.defaults.httpsAgent = new Agent({ ca: [...rootCertificates, readFileSync(ca, "utf8")] });
    const newKey = (await crypto.createPrivateEcdsaKey()).toString();
    const client = new Client({
      directoryUrl,
      accountKey: await this.#storage.write((trx) => store.accountKey(trx, directoryUrl, newKey)),
      ...(externalAccount === undefined ? {} : { externalAccountBinding: externalAccount }),
      backoffAttempts: 12,
      backoffMin: 1000,
      backoffMax: 30_000,
    });
    const account = {
      termsOfServiceAgreed: true,
      ...(email === undefined ? {} : { contact: [`mailto:${email}`] }),
    };
    // With a known key this finds and updates the existing account; authorities may refuse an update without
    // changes.
    await client.createAccount(account).catch((error: unknown) => {
      if (!hasAccount(client)) throw error;
    });
    return client;
  }
}

const unreachable = "The certificate authority could not be reached, or its response is invalid";

/**
 * Why a certificate was not issued, for the zone's owner. Errors of the authority are passed on; errors of
 * the network, the database or files are only in the log.
 */
export function whyNotIssued(error: unknown): string {
  const isOfAuthority =
    error instanceof Error && error.constructor === Error && !("code" in error) && error.message !== "";
  return isOfAuthority ? error.message.slice(0, reasonCharactersMax) : unreachable;
}

function hasAccount(client: Client): boolean {
  try {
    return client.getAccountUrl() !== "";
  } catch {
    return false;
  }
}

function challengeOf(
  zone: Zone,
  authorization: { identifier: { value: string } },
  offered: { type: string; token: string },
  value: string,
): Challenge {
  const host = authorization.identifier.value;
  return offered.type === "dns-01"
    ? { token: offered.token, zoneId: zone.id, kind: "dns", name: `_acme-challenge.${host}`, value }
    : { token: offered.token, zoneId: zone.id, kind: "http", name: host, value };
}
