import { randomUUID } from "node:crypto";
import { unawaited } from "../platform/util/uncaught.ts";
import { SnippetChannel } from "./gateway/channel.ts";
import type { Thrown } from "./gateway/exchange.ts";
import type { GatewayServer } from "./gateway/gateway-server.ts";

/** The parts of a cell that its channels use. */
interface ChannelCell {
  readonly isDead: boolean;
  readonly gateway: Pick<GatewayServer, "begin" | "end">;
  /** Opens a channel to a script, which pins the script in the cell. */
  openChannel(id: string, token: string): Promise<SnippetChannel | Thrown>;
  /** Lets the cell unload a script whose channel has closed. */
  unpin(id: string): Promise<unknown>;
  /** Unloads scripts until at most `count` are left. */
  keep(count: number): Promise<void>;
}

/** The channels into a cell, by script id. An open channel keeps its script loaded. */
export class SnippetChannels {
  readonly #cell: ChannelCell;
  readonly #max: number;
  readonly #channels = new Map<string, Promise<SnippetChannel | Thrown>>();
  readonly #open = new Map<string, SnippetChannel>();

  constructor(cell: ChannelCell, max: number) {
    this.#cell = cell;
    this.#max = max;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Returns the channel to a script, and opens it if necessary; the exception if loading the script threw one. */
  async of(id: string): Promise<SnippetChannel | Thrown> {
    for (;;) {
      let opening = this.#channels.get(id);
      if (opening === undefined) {
        opening = this.#openChannel(id);
        this.#channels.set(id, opening);
      }
      const channel = await opening;
      if (!(channel instanceof SnippetChannel) || channel.isOpen) return channel;
      // The channel was closed meanwhile: to make room, together with all others, or by its snippet.
      if (this.#cell.isDead) throw new Error("the cell has ended");
      this.#closed(id, channel);
    }
  }

  /** Closes the least recently used idle channels until `countMax` are left. */
  async closeIdle(countMax: number): Promise<void> {
    const idle = [...this.#open].filter(([, channel]) => channel.isIdle);
    idle.sort(([, a], [, b]) => a.lastUsedAt - b.lastUsedAt);
    for (const [id, channel] of idle.slice(0, Math.max(0, this.#open.size - countMax))) {
      if (!channel.isIdle) continue;
      channel.close();
      await this.#forget(id, channel);
    }
  }

  closeAll(): void {
    for (const channel of this.#open.values()) channel.close();
  }

  async #openChannel(id: string): Promise<SnippetChannel | Thrown> {
    const token = `channel-${randomUUID()}`;
    try {
      if (this.#open.size >= this.#max) await this.#cell.keep(this.#max - 1);
      const channel = await this.#cell.openChannel(id, token);
      if (!(channel instanceof SnippetChannel)) {
        this.#channels.delete(id);
        return channel;
      }
      this.#open.set(id, channel);
      this.#cell.gateway.begin(token, channel.hooks);
      channel.onClose(() => {
        this.#cell.gateway.end(token);
        this.#closed(id, channel);
      });
      return channel;
    } catch (error) {
      this.#channels.delete(id);
      throw error;
    }
  }

  #closed(id: string, channel: SnippetChannel): void {
    unawaited(this.#forget(id, channel).catch(() => {})); // the cell died
  }

  /** Forgets a channel that has closed, and lets the cell unload its script. */
  async #forget(id: string, channel: SnippetChannel): Promise<void> {
    if (this.#open.get(id) !== channel) return;
    this.#open.delete(id);
    this.#channels.delete(id);
    if (!this.#cell.isDead) await this.#cell.unpin(id);
  }
}
