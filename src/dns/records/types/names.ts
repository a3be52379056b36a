import { invalidContent, invalidPriority } from "../errors.ts";
import { parseHost } from "./host.ts";
import { plain, refuseMembers, type RecordType } from "./type.ts";

const hostType = (type: string, allow: { underscore?: boolean }): RecordType =>
  plain(type, "a valid host name", (text) => parseHost(text, allow));

export const CNAME = hostType("CNAME", { underscore: true });
export const NS = hostType("NS", {});
export const PTR = hostType("PTR", { underscore: true });

const prioritised = /^\s*(-?\d{1,10})\s+(\S+)\s*$/;

export const MX: RecordType = {
  parse(input) {
    refuseMembers("MX", input);
    const { content, priority } = input;
    // Zone files, and some clients, write the priority before the host.
    const match = priority === undefined ? prioritised.exec(content ?? "") : null;
    const number = priority ?? (match === null ? undefined : Number(match[1]));
    const host = parseHost(match?.[2] ?? content?.trim() ?? "", { root: true });
    if (host === undefined) throw invalidContent("MX", "a valid host name", content);
    if (number === undefined || !Number.isInteger(number) || number < 0 || number > 65_535) {
      throw invalidPriority(number);
    }
    return { content: host, priority: number };
  },
};
