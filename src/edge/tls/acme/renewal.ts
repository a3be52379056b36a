import { X509Certificate } from "node:crypto";
import type { Logger } from "pino";
import type { Zone } from "../../../control/zones/zone.ts";
import type { CertificatePack, CertificatePacks } from "../certificates/packs.ts";
import type { UniversalPacks } from "../certificates/universal.ts";
import type { KeyPair } from "../certificates/x509.ts";
import { whyNotIssued, type AcmeAuthority } from "./authority.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import { clock } from "../../../platform/timers/clock.ts";

export interface RenewalOptions {
  authority: Pick<AcmeAuthority, "issue" | "forgetAccount">;
  packs: CertificatePacks;
  universal: Pick<UniversalPacks, "update">;
  zoneOf: (id: string) => Zone | undefined;
  /** Wait after the first failure; doubled after each further one. */
  retrySeconds: number;
  logger: Pick<Logger, "info" | "warn">;
}

/** Longest duration of an attempt; after it another node assumes that this one has died. */
const leaseMs = 15 * 60_000;
const retryMaxMs = 24 * 3_600_000;
const atOnce = 4;

/** Issues due certificate packs, and renews certificates after two thirds of their lifetime. */
export class Renewal {
  readonly #options: RenewalOptions;
  readonly #running = new Map<string, CertificatePack>();
  #isLooking = false;
  #isClosed = false;

  constructor(options: RenewalOptions) {
    this.#options = options;
  }

  /** Starts due work; called frequently. */
  async tick(): Promise<void> {
    const { packs, universal, zoneOf, logger } = this.#options;
    if (this.#isLooking || this.#isClosed) return;
    this.#isLooking = true;
    try {
      await universal.update();
      const nowMs = clock.now();
      const due = await packs.claimDue(nowMs, nowMs + leaseMs, atOnce - this.#running.size);
      for (const pack of due) {
        const zone = zoneOf(pack.zoneId);
        if (zone === undefined) {
          // Created on another node a moment ago, or just deleted. A claim that is kept lasts for minutes.
          await packs.release(pack, nowMs);
          continue;
        }
        this.#running.set(pack.id, pack);
        unawaited(this.#attempt(zone, pack).finally(() => this.#running.delete(pack.id)));
      }
    } catch (error) {
      if (!this.#isClosed) logger.warn({ err: error }, "looking for certificates to issue failed");
    } finally {
      this.#isLooking = false;
    }
  }

  /** Aborts running attempts, so that another node can start them at once. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const running = [...this.#running.values()];
    await Promise.all(running.map((pack) => this.#options.packs.release(pack, clock.now())));
  }

  async #attempt(zone: Zone, pack: CertificatePack): Promise<void> {
    const { authority, packs, logger } = this.#options;
    const log = { zone: zone.name, hosts: pack.hosts, pack: pack.id };
    try {
      const pair = await authority.issue(zone, pack);
      if (this.#isClosed) return;
      const renewOn = renewalOf(pair);
      await packs.issued(zone, pack, pair, renewOn);
      logger.info({ ...log, renewOn: new Date(renewOn) }, "a certificate was issued");
    } catch (error) {
      if (this.#isClosed) return;
      authority.forgetAccount();
      const retryOn = clock.now() + this.#waitMs(pack.attempts);
      logger.warn({ ...log, err: error, retryOn: new Date(retryOn) }, "a certificate was not issued");
      await packs.failed(pack, whyNotIssued(error), retryOn).catch((failure: unknown) => {
        logger.warn({ ...log, err: failure }, "a failed attempt could not be recorded");
      });
    }
  }

  #waitMs(attempts: number): number {
    const ms = Math.min(this.#options.retrySeconds * 1000 * 2 ** attempts, retryMaxMs);
    return Math.round(ms * (0.9 + Math.random() * 0.2));
  }
}

/** Jittered by one percent of the lifetime, so that certificates issued together are renewed apart. */
function renewalOf({ certificate }: KeyPair): number {
  const { validFrom, validTo } = new X509Certificate(certificate);
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
  return Math.floor(from + (to - from) * (2 / 3 - Math.random() / 100));
}
