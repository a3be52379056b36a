import type { TransferConfig } from "../transfers/access.ts";
import type { Resolved, AddressLookup } from "./zone/flattening.ts";
import type { ServedRecord, ServedZoneConfiguration } from "./zone/configuration.ts";

/** The records of names. A name without records no longer exists. */
export type NamedRecords = readonly (readonly [name: string, records: readonly ServedRecord[]])[];

/** An update of the name server's state. Plain data, so that it can be sent to threads. */
export type Update =
  /** A new or changed zone. `names`, if present, has all of its names. */
  | { kind: "zone"; configuration: ServedZoneConfiguration; names?: NamedRecords }
  | { kind: "zone_gone"; id: string }
  | { kind: "names"; zoneId: string; serial: number; names: NamedRecords }
  /** The configuration of outgoing transfers. */
  | { kind: "transfers"; config: TransferConfig }
  /** The zones whose queries are logged. */
  | { kind: "logs"; zoneIds: readonly string[] }
  | { kind: "resolved"; wanted: AddressLookup; resolved: Resolved | undefined };
