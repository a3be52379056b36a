import { z } from "zod";
import { isoTime } from "../../platform/util/ids.ts";
import type { ListedNode } from "../../platform/storage/nodes/node-registry.ts";

const TimeSchema = z.string().meta({ format: "date-time" });

export const NodeSchema = z
  .object({
    id: z.string().meta({ format: "uuid" }),
    name: z.string(),
    state: z.enum(["running", "stopped", "lost"]),
    version: z.string(),
    process_id: z.int(),
    blobs: z.string(),
    started_on: TimeSchema,
    seen_on: TimeSchema,
    stopped_on: TimeSchema.nullable(),
    change_seq: z.int().nullable(),
    object_shards: z.int().nullable(),
  })
  .meta({
    id: "Node",
    description: "A process of this installation. Lost: not stopped, and not seen lately",
  });

/** A node as the API and `selvedge nodes --json` show it. */
export const nodeResource = (node: ListedNode): z.input<typeof NodeSchema> => ({
  id: node.id,
  name: node.name,
  state: node.state,
  version: node.version,
  process_id: node.pid,
  blobs: node.blobs,
  started_on: isoTime(node.startedOn),
  seen_on: isoTime(node.seenOn),
  stopped_on: node.endedOn === null ? null : isoTime(node.endedOn),
  change_seq: node.seq,
  object_shards: node.shards,
});
