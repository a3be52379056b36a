import { declare } from "../../declaration.ts";
import { forms } from "../../platform/config/forms.ts";

/** Smart routing and relays. */
export const declaration = declare({
  settings: {
    relays: {
      kind: "list",
      form: forms.relay,
      flag: "relays",
      env: "SELVEDGE_RELAYS",
      default: [],
      describe: "edges of other nodes that smart routing may use as relays, each NAME=http(s)://HOST:PORT",
    },
    relaySecret: {
      kind: "text",
      form: forms.secret,
      flag: "relay-secret",
      env: "SELVEDGE_RELAY_SECRET",
      describe: "shared secret of nodes that relay for each other; without it, this node does not relay",
      secret: true,
    },
  },
  checkSettings: ({ relays, relaySecret }) =>
    relays.length > 0 && relaySecret === undefined
      ? "Expected a value for relay-secret, as relays are set, but received none"
      : undefined,
});
