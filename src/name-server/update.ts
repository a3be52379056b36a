import type { TransferConfig } from "./transfers/access.ts";
import type { Resolved, Wanted } from "./zone/flattening.ts";
import type { ServedRecord, ZoneFacts } from "./zone/facts.ts";

/** The records of names; a name without records is gone. */
export type NamedRecords = readonly (readonly [name: string, records: readonly ServedRecord[]])[];

/** What the answering side is told; plain data, so that it can go to other threads. */
export type Update =
  /** A zone that is new or has changed as a whole; with `names`, these are all of its names. */
  | { kind: "zone"; facts: ZoneFacts; names?: NamedRecords }
  | { kind: "zone_gone"; id: string }
  | { kind: "names"; zoneId: string; serial: number; names: NamedRecords }
  /** To whom zones are given. */
  | { kind: "transfers"; config: TransferConfig }
  | { kind: "resolved"; wanted: Wanted; resolved: Resolved | undefined };
