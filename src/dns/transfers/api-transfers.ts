import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { dnsEdit, dnsRead } from "../records/access.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { Zone } from "../../control/zones/zone.ts";
import { transferErrors } from "./errors.ts";
import type { OutgoingTransfer, OutgoingTransfers } from "./outgoing.ts";
import type { DnsRecords } from "../records/records.ts";
import { transferErrorCodes } from "./api-errors.ts";
import { clock } from "../../platform/timers/clock.ts";

/** The services that these operations use. */
interface Services {
  records: DnsRecords;
  transfers: OutgoingTransfers;
}

const { operation } = operationsFor<Services>(transferErrorCodes);

const path = "/zones/{zone_id}/secondary_dns/outgoing";
const TimeSchema = z.string().meta({ format: "date-time" });

export const OutgoingTransferSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    peers: z.array(z.string()),
    soa_serial: z.int(),
    created_time: TimeSchema,
    checked_time: TimeSchema.nullable().meta({ description: "When a peer last answered a notification" }),
    last_transferred_time: TimeSchema.nullable(),
  })
  .meta({ id: "OutgoingTransfer", description: "The outgoing transfer of a zone and its peers" });

const BodySchema = z.strictObject({
  name: z.string().min(1).max(255),
  peers: z
    .array(z.string())
    .max(100)
    .transform((ids) => [...new Set(ids)]),
});

async function resource(
  zone: Zone,
  outgoing: OutgoingTransfer,
  { transfers, records }: Services,
): Promise<z.input<typeof OutgoingTransferSchema>> {
  const { transferredMs, notifiedMs } = transfers.timesOf(zone.id);
  return {
    id: zone.id,
    name: outgoing.name,
    peers: [...outgoing.peerIds],
    soa_serial: await records.serialOf(zone),
    created_time: isoTime(outgoing.createdOn),
    checked_time: notifiedMs === undefined ? null : isoTime(notifiedMs),
    last_transferred_time: transferredMs === undefined ? null : isoTime(transferredMs),
  };
}

function find(zone: Zone, { transfers }: Services): OutgoingTransfer {
  const outgoing = transfers.find(zone.id);
  if (outgoing === undefined) throw transferErrors.none(zone.name);
  return outgoing;
}

const StatusSchema = z.enum(["Enabled", "Disabled"]);
const statusOf = ({ isEnabled }: OutgoingTransfer): z.output<typeof StatusSchema> =>
  isEnabled ? "Enabled" : "Disabled";

const getTransfers = operation({
  id: "edge_transfers",
  method: "GET",
  path: "/zones/{zone_id}/edge/transfers",
  summary: "Get the outgoing transfer of a zone with its status, or null if the zone has none",
  access: dnsRead,
  result: z.object({
    outgoing: z.object({ ...OutgoingTransferSchema.shape, status: StatusSchema }).nullable(),
  }),
  async handle({ zone, services }) {
    const outgoing = services.transfers.find(zone.id);
    return {
      outgoing:
        outgoing === undefined
          ? null
          : { ...(await resource(zone, outgoing, services)), status: statusOf(outgoing) },
    };
  },
});

const getOutgoing = operation({
  id: "outgoing_transfer_get",
  method: "GET",
  path,
  summary: "Get the outgoing transfer of a zone",
  access: dnsRead,
  result: OutgoingTransferSchema,
  handle: async ({ zone, services }) => resource(zone, find(zone, services), services),
});

const createOutgoing = operation({
  id: "outgoing_transfer_create",
  method: "POST",
  path,
  summary: "Create the outgoing transfer of a zone, which is disabled at first",
  access: dnsEdit,
  body: BodySchema,
  result: OutgoingTransferSchema,
  async handle({ zone, body, services }) {
    if (zone.type !== "full") throw transferErrors.notServed(zone.name);
    if (services.transfers.find(zone.id) !== undefined) throw transferErrors.exists(zone.name);
    const made = {
      zoneId: zone.id,
      name: body.name,
      peerIds: body.peers,
      isEnabled: false,
      createdOn: clock.now(),
    };
    return resource(zone, await services.transfers.save(zone.accountId, made), services);
  },
});

const updateOutgoing = operation({
  id: "outgoing_transfer_update",
  method: "PUT",
  path,
  summary: "Change the outgoing transfer of a zone",
  access: dnsEdit,
  body: BodySchema,
  result: OutgoingTransferSchema,
  async handle({ zone, body, services }) {
    const changed = { ...find(zone, services), name: body.name, peerIds: body.peers };
    return resource(zone, await services.transfers.save(zone.accountId, changed), services);
  },
});

const deleteOutgoing = operation({
  id: "outgoing_transfer_delete",
  method: "DELETE",
  path,
  summary: "Delete the outgoing transfer of a zone",
  access: dnsEdit,
  result: z.object({ id: z.string() }),
  async handle({ zone, services }) {
    find(zone, services);
    await services.transfers.delete(zone.accountId, zone.id);
    return { id: zone.id };
  },
});

const status = operation({
  id: "outgoing_transfer_status",
  method: "GET",
  path: `${path}/status`,
  summary: "Get whether the outgoing transfer of a zone is enabled",
  access: dnsRead,
  result: StatusSchema,
  handle: async ({ zone, services }) => statusOf(find(zone, services)),
});

const enable = operation({
  id: "outgoing_transfer_enable",
  method: "POST",
  path: `${path}/enable`,
  summary: "Enable the outgoing transfer of a zone, and notify its peers",
  access: dnsEdit,
  result: z.literal("Enabled"),
  async handle({ zone, services }) {
    await services.transfers.save(zone.accountId, { ...find(zone, services), isEnabled: true });
    services.transfers.notify(zone.id);
    return "Enabled" as const;
  },
});

const disable = operation({
  id: "outgoing_transfer_disable",
  method: "POST",
  path: `${path}/disable`,
  summary: "Disable the outgoing transfer of a zone",
  access: dnsEdit,
  result: z.literal("Disabled"),
  async handle({ zone, services }) {
    await services.transfers.save(zone.accountId, { ...find(zone, services), isEnabled: false });
    return "Disabled" as const;
  },
});

const forceNotify = operation({
  id: "outgoing_transfer_force_notify",
  audit: "ahead",
  method: "POST",
  path: `${path}/force_notify`,
  summary: "Notify the peers of a zone now",
  access: dnsEdit,
  result: z.literal("OK"),
  async handle({ zone, services }) {
    if (!find(zone, services).isEnabled) throw transferErrors.disabled(zone.name);
    services.transfers.notify(zone.id);
    return "OK" as const;
  },
});

export const outgoingTransferOperations = [
  getTransfers,
  getOutgoing,
  createOutgoing,
  updateOutgoing,
  deleteOutgoing,
  status,
  enable,
  disable,
  forceNotify,
];
