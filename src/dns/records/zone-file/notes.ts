import { isProxiable, type RecordFields, type RecordSettings } from "../record.ts";

/** The notes about a record in a zone file's comment: `; comment cf_tags=team:web,cf-proxied:true`. */
export interface Notes {
  comment: string | null;
  tags: string[];
  proxied: boolean | undefined;
  settings: RecordSettings;
}

const settingTags = {
  "cf-ipv4-only:true": "ipv4_only",
  "cf-ipv6-only:true": "ipv6_only",
  "cf-flatten-cname:true": "flatten_cname",
} as const;

/**
 * Every record of an export has `cf_tags=`, which distinguishes its notes from comments that people wrote.
 */
export function printNotes(record: RecordFields): string {
  const flags = Object.entries(settingTags).flatMap(([tag, setting]) =>
    record.settings[setting] === true ? [tag] : [],
  );
  const proxied = isProxiable(record) ? [`cf-proxied:${record.proxied}`] : [];
  const tags = [...record.tags.map(encodeTag), ...proxied, ...flags].join(",");
  return `; ${record.comment === null ? "" : `${record.comment} `}cf_tags=${tags}`;
}

/** Parses the comment after the semicolon; undefined if it does not come from an export. */
export function parseNotes(text: string): Notes | undefined {
  const match = /^ ?(?:(.*) )?cf_tags=(\S*)\s*$/su.exec(text);
  if (match === null) return undefined;
  const notes: Notes = { comment: match[1] ?? null, tags: [], proxied: undefined, settings: {} };
  for (const tag of match[2]!.split(",").filter((each) => each !== "")) {
    const setting = settingTags[tag as keyof typeof settingTags];
    if (tag.startsWith("cf-proxied:")) notes.proxied = tag === "cf-proxied:true";
    else if (setting !== undefined) notes.settings[setting] = true;
    else notes.tags.push(decodeTag(tag));
  }
  return notes;
}

const encodeTag = (tag: string): string => tag.replace(/[%\s]/gu, encodeURIComponent);

function decodeTag(tag: string): string {
  try {
    return tag.replace(/(?:%[0-9a-f]{2})+/giu, decodeURIComponent);
  } catch {
    return tag; // a file from another program, in which "%" is not an escape
  }
}
