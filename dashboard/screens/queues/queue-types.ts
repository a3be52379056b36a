/** A queue as the API shows it; the fields that the console uses. */
export interface Queue {
  queue_id: string;
  queue_name: string;
  created_on: string;
  producers_total_count: number;
  consumers_total_count: number;
  producers: { type: string; script: string }[];
  consumers: Consumer[];
  settings: { delivery_delay: number; delivery_paused: boolean; message_retention_period: number };
}

export interface Consumer {
  consumer_id: string;
  type: "worker" | "http_pull";
  script_name?: string;
  script?: string;
  dead_letter_queue: string;
  settings: {
    batch_size: number;
    max_retries: number;
    retry_delay: number;
    max_wait_time_ms?: number;
    max_concurrency?: number | null;
    visibility_timeout_ms?: number;
  };
}

export interface Backlog {
  backlog_count: number;
  backlog_bytes: number;
  oldest_message_timestamp_ms: number;
}

export interface PeekedMessage {
  id: string;
  /** Names the message in a purge. */
  ref: string;
  /** Text is unchanged; other types are in base64. */
  body: string;
  attempts: number;
  timestamp_ms: number;
  metadata: Record<string, string>;
}

/** The body of a message as text; binary ones stay in base64. */
export function bodyOf({ body, metadata }: PeekedMessage): string {
  const type = metadata["CF-Content-Type"];
  if (type !== "json") return body;
  return new TextDecoder().decode(Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0)));
}
