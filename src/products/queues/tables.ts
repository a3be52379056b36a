import type { Generated } from "kysely";
import type { Immutable } from "../../platform/storage/columns.ts";

export interface QueuesTable {
  number: Generated<number>;
  id: Immutable<string>;
  account_id: Immutable<string>;
  name: string;
  settings: string;
  created_on: Immutable<number>;
  modified_on: number;
}

export interface QueueConsumersTable {
  id: Immutable<string>;
  queue_number: Immutable<number>;
  type: string;
  script_name: string | null;
  dead_letter_queue: string | null;
  settings: string;
  created_on: Immutable<number>;
}

/** `available_on` is when a message can be delivered (again): after its delay, or when its lease ends. */
export interface QueueMessagesTable {
  number: Generated<number>;
  queue_number: number;
  id: Immutable<string>;
  content_type: Immutable<string>;
  body: Immutable<Uint8Array>;
  attempts: number;
  available_on: number;
  lease: string | null;
  sent_on: number;
}
