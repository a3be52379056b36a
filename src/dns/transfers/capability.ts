import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { records } from "../records/capability.ts";
import { OutgoingTransfers } from "./outgoing.ts";
import { declaration } from "./declaration.ts";
import { transferErrors } from "./errors.ts";
import { transferErrorCodes } from "./api-errors.ts";

export const transfers = capability({
  name: "zone transfers",
  declares: declaration,
  needs: [storage, records],
  create: (needed) => ({ transfers: new OutgoingTransfers(needed.storage) }),
  async operations() {
    const { outgoingTransferOperations } = await import("./api-transfers.ts");
    const { transferPartyOperations } = await import("./api-transfer-parties.ts");
    return [...outgoingTransferOperations, ...transferPartyOperations];
  },
  errors: [{ title: "Zone transfers", errors: transferErrors, codes: transferErrorCodes }],
  idParameters: ["acl_id", "tsig_id", "peer_id"],
  load: (services) => services.transfers.load(),
});
