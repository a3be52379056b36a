import { createHash } from "node:crypto";
import { isIPv4 } from "node:net";
import { z } from "zod";
import { ApiError, apiErrors } from "../../control/api/errors.ts";
import { operationsFor } from "../../control/api/operation.ts";
import { sensitive } from "../../control/api/sensitive.ts";

/** The services that these operations use. */
interface Services {
  edgeAddresses: readonly string[];
}

const { operation } = operationsFor<Services>();

const IpsSchema = z
  .object({ ipv4_cidrs: z.array(z.string()), ipv6_cidrs: z.array(z.string()), etag: z.string() })
  .meta({ id: "EdgeAddresses" });

const ipsGet = operation({
  id: "ips_get",
  method: "GET",
  path: "/ips",
  summary: "Get the addresses at which visitors reach the edge",
  access: { scope: "caller" },
  query: z.object({ networks: z.string().max(100).optional() }),
  result: IpsSchema,
  async handle({ query, services, messages }) {
    if (query.networks !== undefined)
      messages.push({ code: 10_001, message: "networks is ignored: this installation has one network" });
    const all = services.edgeAddresses;
    return {
      ipv4_cidrs: all.filter((address) => isIPv4(address)).map((address) => `${address}/32`),
      ipv6_cidrs: all.filter((address) => !isIPv4(address)).map((address) => `${address}/128`),
      etag: createHash("sha256").update(all.join(" ")).digest("hex").slice(0, 32),
    };
  },
});

const urlsMax = 500;
const Words = z.array(z.string().min(1).max(8192)).min(1).max(urlsMax);
const PurgeSchema = z.strictObject({
  purge_everything: z.literal(true).optional(),
  files: z
    .array(
      z.union([
        z.string().min(1).max(8192),
        z.strictObject({
          url: z.string().min(1).max(8192),
          headers: sensitive(z.record(z.string().max(100), z.string().max(8192))).optional(),
        }),
      ]),
    )
    .min(1)
    .max(urlsMax)
    .optional(),
  tags: Words.optional(),
  hosts: Words.optional(),
  prefixes: Words.optional(),
});

const purgeCache = operation({
  id: "cache_purge",
  method: "POST",
  path: "/zones/{zone_id}/purge_cache",
  summary: "Refuse a well-formed cache purge: this installation has no cache",
  access: { scope: "zone", permission: "zone_settings:edit" },
  isRefusal: true,
  body: PurgeSchema,
  result: z.object({ id: z.string() }),
  async handle({ body }) {
    const given = Object.keys(body);
    if (given.length !== 1)
      throw new ApiError(
        400,
        1012,
        'Request must contain one of "purge_everything", "files", "tags", "hosts" or "prefixes"',
      );
    throw apiErrors.absentProduct("Cache");
  },
});

export const edgeOperations = [ipsGet, purgeCache];
