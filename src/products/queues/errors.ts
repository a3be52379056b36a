import { defineErrors } from "../../platform/domain-error.ts";
import { queueLimits } from "./queue.ts";

export const queueErrors = defineErrors("queues", {
  notFound: (what: string) => `The queue ${JSON.stringify(what)} does not exist`,
  exists: (name: string) => `Queue name ${JSON.stringify(name)} is already taken`,
  tooMany: () => `Expected at most ${queueLimits.queuesOfAccount} queues in an account`,
  consumerNotFound: (id: string) => `The queue has no consumer with the id ${id}`,
  consumerExists: (name: string) =>
    `Queue ${JSON.stringify(name)} already has a consumer. Change or delete that consumer`,
  noScript: (name: string) => `This Worker does not exist on your account: ${JSON.stringify(name)}`,
  deadLetterQueue: (name: string) => ({
    message: `The dead letter queue ${JSON.stringify(name)} does not exist`,
    pointer: "/body/dead_letter_queue",
  }),
  ownDeadLetters: (name: string) => ({
    message: `Expected a dead letter queue other than ${JSON.stringify(name)} itself, which would deliver the messages forever`,
    pointer: "/body/dead_letter_queue",
  }),
  notPulled: (name: string) =>
    `The messages of ${JSON.stringify(name)} cannot be pulled: its consumer is not of the type http_pull`,
  noEvents: (source = "this source") => ({
    message: `Event subscriptions are not supported: nothing here sends events of ${JSON.stringify(source)} to queues`,
    pointer: "/body/source",
  }),
  noSubscription: (id: string) => `The event subscription ${JSON.stringify(id)} does not exist`,
  message: (why: string, index?: number) => ({
    message: why,
    pointer: index === undefined ? "/body" : `/body/messages/${index}`,
  }),
});
