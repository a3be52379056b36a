import type { Client } from "undici";
import { unawaited } from "../platform/util/uncaught.ts";

/**
 * Notifies a cell of runs that were broken off before their answers, for example because the visitor left. workerd
 * continues no code of such a run, not even in `finally`, so the cell cannot see the end by itself.
 */
export class LeftRuns {
  readonly #control: () => Client;
  #tokens: string[] = [];
  #isSending = false;

  constructor(control: () => Client) {
    this.#control = control;
  }

  add(token: string): void {
    this.#tokens.push(token);
    if (!this.#isSending) unawaited(this.#send());
  }

  /** Sends one message at a time, each with the runs that have been broken off meanwhile. */
  async #send(): Promise<void> {
    this.#isSending = true;
    while (this.#tokens.length > 0) {
      const tokens = this.#tokens;
      this.#tokens = [];
      try {
        const { body } = await this.#control().request({
          method: "PUT",
          path: "/",
          body: JSON.stringify(tokens),
        });
        await body.dump();
      } catch {
        // The cell has ended, or gets them with the next ones.
        this.#tokens = [...tokens, ...this.#tokens];
        break;
      }
    }
    this.#isSending = false;
  }
}
