import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import type { Change, Storage, Write } from "../../platform/storage/storage.ts";
import { helloOf } from "../tls/client-hello.ts";
import { scoreBot, type BotManagement } from "./bot-score.ts";
import * as store from "./store.ts";
import type { BotManagementRow } from "./store.ts";
import { clock } from "../../platform/timers/clock.ts";

/** A request, or the headers of one that is only traced. */
export interface ScoredRequest {
  headers: IncomingHttpHeaders;
  socket?: Socket;
}

/** The zones with bot management; in memory, because every request checks it. */
export class BotManagementSetting {
  readonly #storage: Storage;
  #enabled = new Set<string>();
  #isKnownBot: ((userAgent: string) => boolean) | undefined;

  constructor(storage: Storage) {
    this.#storage = storage;
    storage.onChange(
      async (changes) => {
        for (const { kind, id } of changes) {
          if (kind === "bot_management") await this.#set(id, await store.find(storage.read, id));
        }
      },
      async () => this.#read(),
    );
  }

  async load(): Promise<void> {
    (await this.#read())();
  }

  async #read(): Promise<() => void> {
    const rows = await store.loadAll(this.#storage.read);
    const enabled = new Set(rows.flatMap(({ zoneId, isEnabled }) => (isEnabled ? [zoneId] : [])));
    if (enabled.size > 0) await this.#learnBots();
    return () => (this.#enabled = enabled);
  }

  async find(zoneId: string): Promise<BotManagementRow | undefined> {
    return store.find(this.#storage.read, zoneId);
  }

  async put(zoneId: string, isEnabled: boolean): Promise<BotManagementRow> {
    return this.#storage.write(async (trx, changed) => this.write(trx, changed, zoneId, isEnabled));
  }

  /** Writes the setting within a transaction. */
  async write(
    trx: Write,
    changed: (change: Change) => void,
    zoneId: string,
    isEnabled: boolean,
  ): Promise<BotManagementRow> {
    const before = await store.find(trx, zoneId);
    if (before?.isEnabled === isEnabled) return before;
    const row = { zoneId, isEnabled, modifiedOn: clock.now() };
    await store.put(trx, row);
    changed({ kind: "bot_management", id: zoneId, parentId: zoneId });
    return row;
  }

  forget(zoneId: string): void {
    this.#enabled.delete(zoneId);
  }

  /** Undefined when the zone has no bot management. */
  score(zoneId: string, request: ScoredRequest, path: string): BotManagement | undefined {
    if (this.#isKnownBot === undefined || !this.#enabled.has(zoneId)) return undefined;
    const score = scoreBot(request.headers, path, this.#isKnownBot);
    const hello = request.socket && helloOf(request.socket);
    return hello === undefined ? score : { ...score, ja3Hash: hello.ja3, ja4: hello.ja4 };
  }

  async #set(zoneId: string, row: BotManagementRow | undefined): Promise<void> {
    if (row?.isEnabled !== true) {
      this.#enabled.delete(zoneId);
      return;
    }
    await this.#learnBots();
    this.#enabled.add(zoneId);
  }

  /** The list of user agents is loaded for the first zone that needs it. */
  async #learnBots(): Promise<void> {
    this.#isKnownBot ??= (await import("isbot")).isbot;
  }
}
