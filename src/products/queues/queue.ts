export interface QueueSettings {
  /** Default delay of messages in seconds. */
  deliveryDelay: number;
  isDeliveryPaused: boolean;
  retentionSeconds: number;
  /** When all messages were last deleted; epoch milliseconds. */
  purgedOn?: number;
}

export interface Queue {
  /** Identifies the queue in the table of messages. */
  number: number;
  id: string;
  accountId: string;
  name: string;
  settings: QueueSettings;
  consumer: Consumer | undefined;
  createdOn: number;
  modifiedOn: number;
}

/** The consumer of a queue, at most one. */
export interface Consumer {
  id: string;
  type: "worker" | "http_pull";
  /** For workers only. */
  scriptName: string | null;
  deadLetterQueue: string | null;
  settings: ConsumerSettings;
  createdOn: number;
}

export interface ConsumerSettings {
  batchSize: number;
  /** Deliveries after the first. */
  maxRetries: number;
  /** Delay before a retry in seconds. */
  retryDelay: number;
  /** Longest wait for a batch to fill up. */
  maxWaitTimeMs: number;
  /** Concurrent batches per node; null for the platform's limit. */
  maxConcurrency: number | null;
  /** Lease of a pulled message. */
  visibilityTimeoutMs: number;
}

export const contentTypes = ["text", "bytes", "json", "v8"] as const;
export type ContentType = (typeof contentTypes)[number];

/** A message of a batch. */
export interface QueueMessage {
  /** Row id. */
  number: number;
  id: string;
  contentType: ContentType;
  body: Uint8Array;
  /** Deliveries so far, including the current one. */
  attempts: number;
  sentOn: number;
}

export interface OutgoingMessage {
  contentType: ContentType;
  body: Uint8Array;
  delaySeconds?: number | undefined;
}

export const queueDefaults: QueueSettings = {
  deliveryDelay: 0,
  isDeliveryPaused: false,
  retentionSeconds: 4 * 24 * 60 * 60,
};
export const consumerDefaults: ConsumerSettings = {
  batchSize: 10,
  maxRetries: 3,
  retryDelay: 0,
  maxWaitTimeMs: 5000,
  maxConcurrency: null,
  visibilityTimeoutMs: 30_000,
};

export const queueLimits = {
  messageBytes: 128 * 1024,
  batchMessages: 100,
  batchBytes: 256 * 1024,
  delaySeconds: 24 * 60 * 60,
  retentionSecondsMin: 60,
  retentionSecondsMax: 14 * 24 * 60 * 60,
  consumerBatch: 100,
  waitTimeMs: 60_000,
  retries: 100,
  concurrency: 250,
  visibilityTimeoutMs: 12 * 60 * 60 * 1000,
  queuesOfAccount: 10_000,
};

export const queueNamePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;
