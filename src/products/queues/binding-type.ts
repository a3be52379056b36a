import { z } from "zod";
import { bindingType } from "../../workers/binding-type.ts";

/** A binding to a queue, for sending. */
export const queueType = bindingType({
  fields: {
    queue_name: z.string().min(1).max(63),
    delivery_delay: z.coerce.number().int().min(0).max(43_200).optional(),
  },
  async check({ queue_name }, { accountId, resources }) {
    if (await resources.exists("queue", accountId, queue_name)) return undefined;
    return `the queue "${queue_name}", which does not exist on this account`;
  },
});
