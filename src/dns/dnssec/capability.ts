import { capability } from "../../capability.ts";
import { activationOf } from "../../platform/config/derived.ts";
import { storage } from "../../platform/capability.ts";
import { Dnssec } from "./dnssec.ts";
import { declaration } from "./declaration.ts";
import { dnssecErrors } from "./errors.ts";
import { dnssecErrorCodes } from "./api-errors.ts";

export const dnssec = capability({
  name: "DNSSEC",
  declares: declaration,
  needs: [storage],
  create({ config, storage: database }) {
    // With static activation, zones need no delegation, so there is no parent whose DS could be checked.
    const intervalSeconds = activationOf(config) === "static" ? 0 : config.activationIntervalSeconds;
    return { dnssec: new Dnssec(database, intervalSeconds) };
  },
  operations: async () => (await import("./api-dnssec.ts")).dnssecOperations,
  errors: [{ title: "DNSSEC", errors: dnssecErrors, codes: dnssecErrorCodes }],
  load: (services) => services.dnssec.load(),
});
