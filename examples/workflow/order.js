import { WorkflowEntrypoint } from "cloudflare:workers";

/** An order: each step runs until it succeeds once, also when the server restarts in between. */
export class Order extends WorkflowEntrypoint {
  async run(event, step) {
    const { item, count } = event.payload;
    const price = await step.do("price", async () => count * 7);
    const { payload } = await step.waitForEvent("payment", { type: "paid", timeout: "7 days" });
    await step.sleep("pack", "1 second");
    const parcel = await step.do("ship", { retries: { limit: 3, delay: "1 second" } }, async () => {
      return `parcel with ${count} × ${item}`;
    });
    return { price, paidWith: payload.card, parcel };
  }
}

export default {
  fetch: () => new Response("This script is started through its workflow.\n"),
};
