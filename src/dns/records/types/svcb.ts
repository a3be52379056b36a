import { dnsErrors, invalidContent } from "../errors.ts";
import { host, uint16 } from "./fields.ts";
import { parseParameters, printParameter } from "./svcb-parameters.ts";
import { textOrEmpty, type RecordType } from "./type.ts";

const members = ["priority", "target", "value"];
const priorityField = uint16("priority");
const targetField = host("target");

/** HTTPS and SVCB (RFC 9460). Priority 0 makes the record an alias, which has no parameters. */
const serviceBinding = (type: string): RecordType => ({
  parse(input) {
    const raw: Readonly<Record<string, unknown>> = input.data ?? fromContent(input.content ?? "");
    const fault = (field: string, expected: string): Error =>
      input.data === undefined
        ? invalidContent(
            type,
            `of the form "priority target parameters", with ${expected} for ${field},`,
            input.content,
          )
        : dnsErrors.invalidData(type, field, expected, raw[field]);
    const unknown = Object.keys(raw).find((field) => !members.includes(field));
    if (unknown !== undefined) throw dnsErrors.unknownData(type, unknown, members);
    const priority = priorityField.parse(raw["priority"]) as number | undefined;
    if (priority === undefined) throw fault("priority", priorityField.expected);
    const target = targetField.parse(raw["target"]) as string | undefined;
    if (target === undefined) throw fault("target", targetField.expected);
    if (typeof (raw["value"] ?? "") !== "string") throw fault("value", "text");
    const parameters = parseParameters(textOrEmpty(raw["value"]));
    if (typeof parameters === "string") throw fault("value", parameters);
    if (priority === 0 && parameters.length > 0)
      throw fault("value", "no parameters, because priority 0 makes it an alias,");
    const value = parameters.map(printParameter).join(" ");
    return { content: `${priority} ${target} ${value}`.trimEnd(), data: { priority, target, value } };
  },
});

export const SVCB = serviceBinding("SVCB");
export const HTTPS = serviceBinding("HTTPS");

function fromContent(content: string): Record<string, unknown> {
  const match = /^\s*(\S+)\s+(\S+)(?:\s+(.*))?$/s.exec(content);
  return { priority: match?.[1], target: match?.[2], value: match?.[3] ?? "" };
}
