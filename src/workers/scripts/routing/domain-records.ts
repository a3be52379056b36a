import { emptyBatch } from "../../../dns/records/batch.ts";
import { proxiableTypes, type DnsRecord } from "../../../dns/records/record.ts";
import type { DnsRecords } from "../../../dns/records/records.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import { scriptDomainErrors } from "./errors.ts";

/** The discard prefix (RFC 6666): the edge answers for a proxied record with its own addresses. */
const nowhere = "100::";
const comment = "Made for a script's domain";

/** The DNS records that lead visitors of a custom domain to the edge. */
export class DomainRecords {
  readonly #records: DnsRecords;

  constructor(records: DnsRecords) {
    this.#records = records;
  }

  /** Records that lead visitors of a host past the edge. */
  async conflicts(zone: Zone, host: string): Promise<DnsRecord[]> {
    return (await this.#addresses(zone, host)).filter(({ proxied }) => !proxied);
  }

  /** Points a host to the edge. Replaces records that lead elsewhere only if `mayReplace` is set. */
  async lead(zone: Zone, host: string, mayReplace: boolean): Promise<void> {
    const addresses = await this.#addresses(zone, host);
    const elsewhere = addresses.filter(({ proxied }) => !proxied);
    if (elsewhere.length > 0 && !mayReplace)
      throw scriptDomainErrors.hasRecords(
        host,
        elsewhere.map(({ type, content }) => `${type} ${content}`),
      );
    const isLed = addresses.length > elsewhere.length;
    if (isLed && elsewhere.length === 0) return;
    const made = { type: "AAAA", name: host, content: nowhere, ttl: 1, proxied: true, comment };
    await this.#records.batch(zone, {
      ...emptyBatch,
      deletes: elsewhere.map(({ id }) => ({ id })),
      posts: isLed ? [] : [made],
    });
  }

  /** Removes the record that was created for a host. */
  async drop(zone: Zone, host: string): Promise<void> {
    const made = (await this.#addresses(zone, host)).filter(
      (record) => record.content === nowhere && record.comment === comment,
    );
    if (made.length > 0)
      await this.#records.batch(zone, { ...emptyBatch, deletes: made.map(({ id }) => ({ id })) });
  }

  async #addresses(zone: Zone, host: string): Promise<DnsRecord[]> {
    const { records } = await this.#records.list(zone, {
      type: undefined,
      proxied: undefined,
      name: [{ operator: "exact", text: host }],
      content: [],
      comment: [],
      tags: [],
      search: undefined,
      shadowedBy: undefined,
      shadowing: undefined,
      match: "all",
      tagMatch: "all",
      order: "type",
      direction: "asc",
      page: 1,
      perPage: 1000,
    });
    return records.filter(({ type }) => proxiableTypes.has(type));
  }
}
