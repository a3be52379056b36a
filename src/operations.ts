import { accountOperations } from "./accounts/api.ts";
import { userOperations } from "./accounts/user-api.ts";
import type { Operation } from "./api/operation.ts";
import { assetOperations } from "./assets/api.ts";
import { dispatchOperations } from "./dispatch/api.ts";
import { dnsOperations } from "./dns/api.ts";
import { imageOperations } from "./images/api.ts";
import { kvOperations } from "./kv/api.ts";
import { dnssecOperations } from "./name-server/api-dnssec.ts";
import { dnsSettingsOperations } from "./name-server/api-settings.ts";
import { transferPartyOperations } from "./name-server/api-transfer-parties.ts";
import { outgoingTransferOperations } from "./name-server/api-transfers.ts";
import { botManagementOperations } from "./request-cf/api.ts";
import { queueOperations } from "./queues/api.ts";
import { rulesetOperations } from "./rulesets/api.ts";
import { scriptOperations } from "./scripts/api.ts";
import { smartRoutingOperations } from "./smart-routing/api.ts";
import { scheduleOperations } from "./schedules/api.ts";
import { snippetOperations } from "./snippets/api.ts";
import { tailOperations } from "./tail/api.ts";
import { apiTokenOperations } from "./tokens/api.ts";
import { tlsOperations } from "./tls/api.ts";
import { workflowOperations } from "./workflows/api.ts";
import { zoneOperations } from "./zones/api.ts";

/** Every operation of the management API. */
export const operations: readonly Operation[] = [
  ...userOperations,
  ...accountOperations,
  ...apiTokenOperations,
  ...zoneOperations,
  ...dnsOperations,
  ...dnssecOperations,
  ...dnsSettingsOperations,
  ...outgoingTransferOperations,
  ...transferPartyOperations,
  ...smartRoutingOperations,
  ...tlsOperations,
  ...rulesetOperations,
  ...assetOperations,
  ...scriptOperations,
  ...dispatchOperations,
  ...kvOperations,
  ...snippetOperations,
  ...queueOperations,
  ...scheduleOperations,
  ...tailOperations,
  ...imageOperations,
  ...botManagementOperations,
  ...workflowOperations,
];
