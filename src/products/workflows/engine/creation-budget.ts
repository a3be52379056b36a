import { clock } from "../../../platform/timers/clock.ts";
import { setTimeout as delay } from "node:timers/promises";
import { TokenBuckets } from "../../../platform/util/token-buckets.ts";
import {
  ownLimit,
  type SharedLimit,
  type SharedRates,
} from "../../../platform/storage/nodes/shared-rates.ts";
import { workflowErrors } from "../errors.ts";
import type { Workflow } from "../workflow.ts";

/**
 * Limits how many instances of a workflow and of an account are created or restarted per second; bursts of one
 * second are allowed. With `shared`, the limits hold approximately over all nodes.
 */
export class CreationBudget {
  readonly #ofWorkflow: TokenBuckets;
  readonly #ofAccount: TokenBuckets;
  readonly #workflowLimit: SharedLimit;
  readonly #accountLimit: SharedLimit;

  /** Per second; 0 for no limit. */
  constructor(rates: { workflow: number; account: number }, shared?: Pick<SharedRates, "share">) {
    this.#ofWorkflow = new TokenBuckets(rates.workflow, rates.workflow, clock.now);
    this.#ofAccount = new TokenBuckets(rates.account, rates.account, clock.now);
    const share = (name: string, buckets: TokenBuckets): SharedLimit =>
      shared?.share(name, (key, count) => buckets.take(key, count)) ?? ownLimit;
    this.#workflowLimit = share("workflow-creations", this.#ofWorkflow);
    this.#accountLimit = share("account-creations", this.#ofAccount);
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
    this.#ofWorkflow.take(workflow.id, -count * this.#workflowLimit.weight);
    this.#ofAccount.take(workflow.accountId, -count * this.#accountLimit.weight);
    this.#workflowLimit.note(workflow.id, -count);
    this.#accountLimit.note(workflow.accountId, -count);
  }

  #waitMs(workflow: Workflow, count: number): number {
    return Math.max(
      this.#ofWorkflow.waitMs(workflow.id, count * this.#workflowLimit.weight),
      this.#ofAccount.waitMs(workflow.accountId, count * this.#accountLimit.weight),
    );
  }
}
