import { Agent } from "node:https";
import { readFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import type { Client } from "acme-client";
import type { Storage } from "../../storage/storage.ts";
import type { Zone } from "../../zones/zone.ts";
import type { CertificatePack } from "../packs.ts";
import type { KeyPair } from "../x509.ts";
import type { Challenges } from "./challenges.ts";
import * as store from "./store.ts";
import type { Challenge } from "./store.ts";

export interface AcmeOptions {
  /** URL of the authority's directory (RFC 8555, 7.1.1). */
  directory: string;
  email: string | undefined;
  /** A file with the authority, in PEM, of the directory's own certificate, beside those that Node trusts. */
  ca: string | undefined;
  /** The account at the authority that ours belongs to (RFC 8555, 7.3.4). */
  externalAccount: { kid: string; hmacKey: string } | undefined;
}

const requestTimeoutMs = 30_000;
/** Other nodes see a change of the configuration within a second. */
const otherNodesMs = 1500;

/** An authority that issues certificates over ACME, and this installation's account with it. */
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

  /** A certificate for the pack's hosts, with a key of its own. Rejects with what the authority said against it. */
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
      // It would ask over the network, and by names that need not lead here from here; we answer as soon as it is written.
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

  /** The account, registered where it is not. A failure is tried again with the next certificate. */
  #account(): Promise<Client> {
    this.#client ??= this.#register().catch((error: unknown) => {
      this.#client = undefined;
      throw error;
    });
    return this.#client;
  }

  /** Takes the account for unknown: an authority may lose it. */
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
    // With a key that the authority knows this finds the account that is there, and updates it: an authority may refuse
    // an update that changes nothing.
    await client.createAccount(account).catch((error: unknown) => {
      if (!hasAccount(client)) throw error;
    });
    return client;
  }
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
