import type { Logger } from "pino";
import { Answering } from "./answering.ts";
import { ResponseRateLimit } from "./rate-limit.ts";
import { Responder } from "./responder.ts";
import type { Update } from "./update.ts";
import { Flattening, type Wanted } from "./zone/flattening.ts";
import { Lookup } from "./zone/lookup.ts";
import { NameSpace } from "./zone/name-space.ts";
import type { ZoneKey } from "./zone/facts.ts";
import type { Signer } from "./zone/signer.ts";
import { ServedZone } from "./zone/zone.ts";

export interface AuthorityOptions {
  /** Answers to one network, of one kind, in a second; 0 for no limit. */
  responseRateLimit: number;
  /** 16 bytes, base64. */
  cookieSecret: string;
  identity: string;
}

export type MakeSigner = (zoneName: string, key: ZoneKey) => Signer;

/** All that one thread needs to answer: the zones, kept current by updates, and who answers from them. */
export class Authority {
  readonly space = new NameSpace();
  readonly answering: Answering;
  readonly responder: Responder;
  readonly #flattening: Flattening;
  readonly #makeSigner: MakeSigner;

  constructor(
    options: AuthorityOptions,
    makeSigner: MakeSigner,
    want: (wanted: Wanted) => void,
    logger: Pick<Logger, "error">,
  ) {
    this.#makeSigner = makeSigner;
    this.#flattening = new Flattening(want);
    this.responder = new Responder({
      space: this.space,
      lookup: new Lookup(this.space, this.#flattening),
      rateLimit: new ResponseRateLimit(options.responseRateLimit),
      cookieSecret: Buffer.from(options.cookieSecret, "base64"),
      identity: options.identity,
    });
    this.answering = new Answering(this.responder, this.#flattening, logger);
  }

  apply(update: Update): void {
    const { space } = this;
    switch (update.kind) {
      case "zone": {
        const { facts, names } = update;
        let zone = names === undefined ? space.get(facts.id) : undefined;
        const signer = this.#signerOf(facts.name, facts.dnssec, space.get(facts.id));
        if (zone === undefined) {
          zone = new ServedZone(facts, signer);
          for (const [name, records] of names ?? []) zone.setRecords(name, records);
          space.add(zone);
        } else zone.setFacts(facts, signer);
        break;
      }
      case "zone_gone":
        space.remove(update.id);
        break;
      case "names": {
        const zone = space.get(update.zoneId);
        if (zone === undefined) return;
        for (const [name, records] of update.names) zone.setRecords(name, records);
        zone.setSerial(update.serial);
        break;
      }
      case "resolved":
        this.#flattening.set(update.wanted, update.resolved, Date.now());
        return;
    }
    space.epoch++;
  }

  /** The same key keeps its signer, and with it the signatures that were made. */
  #signerOf(zoneName: string, key: ZoneKey | undefined, before: ServedZone | undefined): Signer | undefined {
    if (key === undefined) return undefined;
    const known = before?.facts.dnssec;
    const isSame = JSON.stringify(known) === JSON.stringify(key);
    return isSame ? before?.signer : this.#makeSigner(zoneName, key);
  }
}
