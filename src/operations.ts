import { accountOperations } from "./control/accounts/api.ts";
import { invitationOperations } from "./control/accounts/api-invitations.ts";
import { memberOperations } from "./control/accounts/api-members.ts";
import { membershipOperations } from "./control/accounts/api-memberships.ts";
import { userOperations } from "./control/accounts/user-api.ts";
import type { Operation } from "./control/api/operation.ts";
import type { Services } from "./services.ts";
import { assetOperations } from "./workers/assets/api.ts";
import { dispatchOperations } from "./workers/dispatch/api.ts";
import { dnsOperations } from "./dns/records/api.ts";
import { edgeOperations } from "./edge/configuration/api.ts";
import { imageOperations } from "./products/images/api.ts";
import { kvOperations } from "./products/kv/api.ts";
import { dnssecOperations } from "./dns/dnssec/api-dnssec.ts";
import { dnsSettingsOperations } from "./dns/settings/api-settings.ts";
import { transferPartyOperations } from "./dns/transfers/api-transfer-parties.ts";
import { outgoingTransferOperations } from "./dns/transfers/api-transfers.ts";
import { botManagementOperations } from "./edge/client-info/api.ts";
import { queueOperations } from "./products/queues/api.ts";
import { rulesetOperations } from "./control/rulesets/api.ts";
import { scriptOperations } from "./workers/scripts/api.ts";
import { smartRoutingOperations } from "./edge/smart-routing/api.ts";
import { scheduleOperations } from "./products/schedules/api.ts";
import { snippetOperations } from "./products/snippets/api.ts";
import { tailOperations } from "./workers/tail/api.ts";
import { apiTokenOperations } from "./control/tokens/api.ts";
import { tlsOperations } from "./edge/tls/certificates/api.ts";
import { workflowOperations } from "./products/workflows/api/api.ts";
import { zoneOperations } from "./control/zones/api.ts";
import { planOperations } from "./control/zones/api-plans.ts";
import { zoneSettingsOperations } from "./control/zones/api-settings.ts";

/** Every operation of the management API. */
export const operations: readonly Operation<Services>[] = [
  ...userOperations,
  ...accountOperations,
  ...memberOperations,
  ...membershipOperations,
  ...invitationOperations,
  ...apiTokenOperations,
  ...zoneOperations,
  ...planOperations,
  ...zoneSettingsOperations,
  ...edgeOperations,
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
