import { defineErrors } from "../../platform/domain-error.ts";
import { showList } from "../../platform/util/json.ts";
import { dataSetNames, jobsMax } from "./job.ts";

export const logpushErrors = defineErrors("logpush", {
  noJob: (id: string) => `The Logpush job "${id}" does not exist`,
  tooMany: () => `Expected at most ${jobsMax} Logpush jobs of a zone or an account`,
  noDataSetAt: (name: string, scope: string) =>
    `Expected a data set of the ${scope} but received "${name}". This installation pushes ${showList(dataSetNames)}`,
  noDataSet: (name: string, scope: string) => ({
    message: `Expected a data set of the ${scope} but received "${name}". This installation pushes ${showList(dataSetNames)}`,
    pointer: "/body/dataset",
  }),
  unsupported: (what: string, why: string, pointer: string) => ({
    message: `${what} is not supported: ${why}`,
    pointer,
  }),
  invalid: (message: string, pointer: string) => ({ message, pointer }),
  destination: (message: string) => ({ message, pointer: "/body/destination_conf" }),
  unreachable: (why: string) => ({
    message: `The destination does not accept uploads: ${why}`,
    pointer: "/body/destination_conf",
  }),
  challenge: () => ({
    message:
      "Expected the token of the file that POST …/logpush/ownership has written to this destination for ownership_challenge",
    pointer: "/body/ownership_challenge",
  }),
});
