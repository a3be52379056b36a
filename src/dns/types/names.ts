import { dnsErrors } from "../errors.ts";
import { parseHost } from "./host.ts";
import type { RecordType } from "./type.ts";

const hostType = (type: string, allow: { underscore?: boolean; root?: boolean }): RecordType => ({
  parse({ content }) {
    const host = parseHost(content?.trim() ?? "", allow);
    if (host === undefined) throw dnsErrors.invalidContent(type, "a valid host name", content);
    return { content: host };
  },
});

export const CNAME = hostType("CNAME", { underscore: true });
export const NS = hostType("NS", {});
export const PTR = hostType("PTR", { underscore: true });

const prioritised = /^\s*(\d{1,5})\s+(\S+)\s*$/;

export const MX: RecordType = {
  parse({ content, priority }) {
    // Zone files, and some clients, write the priority before the host.
    const match = priority === undefined ? prioritised.exec(content ?? "") : null;
    const target = match?.[2] ?? content?.trim() ?? "";
    const number = priority ?? (match === null ? 0 : Number(match[1]));
    if (!Number.isInteger(number) || number < 0 || number > 65_535) throw dnsErrors.invalidPriority(number);
    const host = parseHost(target, { root: true });
    if (host === undefined) throw dnsErrors.invalidContent("MX", "a valid host name", content);
    return { content: host, priority: number };
  },
};
