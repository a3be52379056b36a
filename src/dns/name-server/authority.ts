import { Answering, type ErrorLog } from "./answering.ts";
import { ResponseRateLimit } from "./rate-limit.ts";
import { Responder } from "./responder.ts";
import { TransferAccess } from "../transfers/access.ts";
import { Journal } from "../transfers/journal.ts";
import { ZoneTransfers } from "../transfers/transfers.ts";
import type { NamedRecords, Update } from "./update.ts";
import { Flattening, type AddressLookup } from "./zone/flattening.ts";
import { Lookup } from "./zone/lookup.ts";
import { NameSpace } from "./zone/name-space.ts";
import type { ZoneKey } from "./zone/configuration.ts";
import type { RRsetSigner } from "./zone/signer.ts";
import { ServedZone } from "./zone/zone.ts";
import { QueryLog, type LoggedQuery } from "./query-log.ts";
import { clock } from "../../platform/timers/clock.ts";

export interface AuthorityOptions {
  /** Responses of one kind to one network in a second; 0 for no limit. */
  responseRateLimit: number;
  /** 16 bytes, base64. */
  cookieSecret: string;
  identity: string;
}

/** Callbacks of an authority: for lookups of external names, for finished transfers, and for logged queries. */
export interface OutwardCalls {
  want: (wanted: AddressLookup) => void;
  onTransfer: (zoneId: string) => void;
  onQueries: (queries: readonly LoggedQuery[]) => void;
}
export interface AuthorityCalls extends OutwardCalls {
  makeSigner: MakeSigner;
}
export type MakeSigner = (zoneName: string, key: ZoneKey) => RRsetSigner;

/** The state of one thread: the zones, kept current by updates, and the components that answer from them. */
export class Authority {
  readonly space = new NameSpace();
  readonly answering: Answering;
  readonly responder: Responder;
  readonly transfers: ZoneTransfers;
  readonly #flattening: Flattening;
  readonly #makeSigner: MakeSigner;
  readonly #queryLog: QueryLog;
  readonly #access = new TransferAccess();
  /** By zone id, for zones with outgoing transfers. */
  readonly #journals = new Map<string, Journal>();

  constructor(options: AuthorityOptions, calls: AuthorityCalls, logger: ErrorLog) {
    this.#makeSigner = calls.makeSigner;
    this.#flattening = new Flattening(calls.want);
    const lookup = new Lookup(this.space, this.#flattening);
    this.transfers = new ZoneTransfers({
      space: this.space,
      lookup,
      flattening: this.#flattening,
      access: this.#access,
      journalOf: (zoneId) => this.#journals.get(zoneId),
      onTransfer: calls.onTransfer,
    });
    this.#queryLog = new QueryLog(calls.onQueries);
    this.responder = new Responder({
      space: this.space,
      lookup,
      access: this.#access,
      rateLimit: new ResponseRateLimit(options.responseRateLimit),
      cookieSecret: Buffer.from(options.cookieSecret, "base64"),
      identity: options.identity,
      queryLog: this.#queryLog,
    });
    this.answering = new Answering(this.responder, this.#flattening, logger);
  }

  apply(update: Update): void {
    const { space } = this;
    switch (update.kind) {
      case "zone": {
        const { configuration, names } = update;
        let zone = names === undefined ? space.get(configuration.id) : undefined;
        const signer = this.#signerOf(configuration.name, configuration.dnssec, space.get(configuration.id));
        if (zone === undefined) {
          zone = new ServedZone(configuration, signer);
          for (const [name, records] of names ?? []) zone.setRecords(name, records);
          space.add(zone);
        } else {
          zone.setConfiguration(configuration, signer);
          space.reconfigured(zone);
        }
        this.#journals.get(configuration.id)?.clear();
        break;
      }
      case "zone_gone":
        space.remove(update.id);
        this.#journals.delete(update.id);
        break;
      case "names": {
        const zone = space.get(update.zoneId);
        if (zone === undefined) return;
        this.#change(zone, update.names, update.serial);
        break;
      }
      case "transfers":
        this.#access.set(update.config);
        this.#keepJournals();
        return;
      case "logs":
        this.#queryLog.use(update.zoneIds);
        return;
      case "resolved":
        this.#flattening.set(update.wanted, update.resolved, clock.now());
        return;
    }
    space.epoch++;
  }

  #change(zone: ServedZone, names: NamedRecords, serial: number): void {
    const change = (): void => {
      for (const [name, records] of names) zone.setRecords(name, records);
      zone.setSerial(serial);
    };
    const journal = this.#journals.get(zone.configuration.id);
    if (journal === undefined) change();
    else
      journal.follow(
        zone,
        names.map(([name]) => name),
        change,
      );
  }

  #keepJournals(): void {
    for (const { configuration } of this.space.zones()) {
      if (!this.#access.isGivenOut(configuration.id)) this.#journals.delete(configuration.id);
      else if (!this.#journals.has(configuration.id)) this.#journals.set(configuration.id, new Journal());
    }
  }

  /** Reuses the signer, and with it the cached signatures, if the key is unchanged. */
  #signerOf(
    zoneName: string,
    key: ZoneKey | undefined,
    before: ServedZone | undefined,
  ): RRsetSigner | undefined {
    if (key === undefined) return undefined;
    const known = before?.configuration.dnssec;
    const isSame = JSON.stringify(known) === JSON.stringify(key);
    return isSame ? before?.signer : this.#makeSigner(zoneName, key);
  }
}
