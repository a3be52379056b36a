import { declare, table } from "../../declaration.ts";
import type {
  TransferKeysTable,
  TransferNetworksTable,
  TransferPeersTable,
  OutgoingTransfersTable,
} from "./tables.ts";

/** Zone transfers. */
export const declaration = declare({
  tables: {
    transfer_keys: table<TransferKeysTable>(),
    transfer_networks: table<TransferNetworksTable>(),
    transfer_peers: table<TransferPeersTable>(),
    outgoing_transfers: table<OutgoingTransfersTable>(),
  },
  changes: ["zone_transfers"],
});
