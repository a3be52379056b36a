import { isIP } from "node:net";
import { z } from "zod";
import type { OriginOverride, Rule } from "./ruleset.ts";

const HostSchema = z
  .string()
  .max(253)
  .toLowerCase()
  .refine(
    (text) => isIP(text) !== 0 || /^(?!-)[a-z0-9_-]+(\.[a-z0-9_-]+)*$/.test(text),
    "a host name or an IP address",
  );

/**
 * Parameters of a rule in the phase `http_request_origin`: the Host header, the origin's host and port, and
 * the SNI.
 */
export const OriginParametersSchema = z
  .strictObject({
    host_header: HostSchema.optional(),
    origin: z
      .strictObject({ host: HostSchema.optional(), port: z.int().min(1).max(65_535).optional() })
      .refine((origin) => Object.keys(origin).length > 0, "a host, a port or both")
      .optional(),
    sni: z.strictObject({ value: HostSchema }).optional(),
  })
  .refine((parameters) => Object.keys(parameters).length > 0, "host_header, origin or sni");

/** The origin that a rule of the phase `http_request_origin` sets. Absent properties are not overridden. */
export function originOverride(rule: Rule): OriginOverride {
  const parameters = OriginParametersSchema.parse(rule.actionParameters);
  return {
    ...(parameters.host_header === undefined ? {} : { hostHeader: parameters.host_header }),
    ...(parameters.origin?.host === undefined ? {} : { host: parameters.origin.host }),
    ...(parameters.origin?.port === undefined ? {} : { port: parameters.origin.port }),
    ...(parameters.sni === undefined ? {} : { sni: parameters.sni.value }),
  };
}
