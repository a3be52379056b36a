import { setTimeout as delay } from "node:timers/promises";
import { TokenBuckets } from "../../../platform/util/token-buckets.ts";
import { workflowErrors } from "../errors.ts";
import type { Workflow } from "../workflow.ts";

/**
 * Limits how many instances of a workflow and of an account this node creates or restarts per second; bursts
 * of one second are allowed.
 */
export class CreationBudget {
  readonly #ofWorkflow: TokenBuckets;
  readonly #ofAccount: TokenBuckets;

  /** Per second; 0 for no limit. */
  constructor(rates: { workflow: number; account: number }) {
    this.#ofWorkflow = new TokenBuckets(rates.workflow);
    this.#ofAccount = new TokenBuckets(rates.account);
  }

  /**
   * Takes tokens for `count` instances and returns how many it took. Existing instances need none, but are
   * looked up only when the budget is short. Throws when the wait would exceed `waitMsMax`.
   */
  async take(
    workflow: Workflow,
    count: number,
    { waitMsMax = 0, countExisting }: { waitMsMax?: number; countExisting?: () => Promise<number> } = {},
  ): Promise<number> {
    let wanted = count;
    if (this.#waitMs(workflow, wanted) > 0 && countExisting !== undefined) wanted -= await countExisting();
    if (wanted <= 0) return 0;
    const waitMs = this.#waitMs(workflow, wanted);
    if (waitMs > waitMsMax) throw workflowErrors.tooManyCreated(Math.max(1, Math.ceil(waitMs / 1000)));
    this.giveBack(workflow, -wanted);
    if (waitMs > 0) await delay(waitMs);
    return wanted;
  }

  giveBack(workflow: Workflow, count: number): void {
    this.#ofWorkflow.take(workflow.id, -count);
    this.#ofAccount.take(workflow.accountId, -count);
  }

  #waitMs(workflow: Workflow, count: number): number {
    return Math.max(
      this.#ofWorkflow.waitMs(workflow.id, count),
      this.#ofAccount.waitMs(workflow.accountId, count),
    );
  }
}
