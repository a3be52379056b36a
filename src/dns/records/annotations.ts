import type { Plan } from "../../control/zones/plans.ts";
import { dnsErrors } from "./errors.ts";

const tagNameLengthMax = 32;
const tagValueLengthMax = 100;
/** Zone files use these names for other notes; see zone-file/notes.ts. */
const reservedTagNames: ReadonlySet<string> = new Set([
  "cf-proxied",
  "cf-ipv4-only",
  "cf-ipv6-only",
  "cf-flatten-cname",
]);
// oxlint-disable-next-line no-control-regex
const hasControls = (text: string): boolean => /[\u0000-\u001f\u007f]/.test(text) || !text.isWellFormed();

/** Validates a record's comment, which DNS answers never show. An empty comment becomes null. */
export function parseComment(comment: string | null, plan: Plan): string | null {
  if (comment === null || comment === "") return null;
  if (comment.length > plan.dnsCommentLengthMax) {
    const expected = `at most ${plan.dnsCommentLengthMax} characters on this plan (there are ${comment.length})`;
    throw dnsErrors.invalidComment(expected, comment);
  }
  if (hasControls(comment)) throw dnsErrors.invalidComment("one line without control characters", comment);
  return comment;
}

/**
 * Validates tags of the form "name" or "name:value". Returns them with names in lower case, sorted and
 * without duplicates.
 */
export function parseTags(tags: readonly string[], plan: Plan): string[] {
  if (tags.length > plan.dnsTagsMax) {
    const expected =
      plan.dnsTagsMax === 0 ? "no tags on this plan" : `at most ${plan.dnsTagsMax} tags on this plan`;
    throw dnsErrors.invalidTag(tags[plan.dnsTagsMax]!, expected);
  }
  return [...new Set(tags.map(parseTag))].sort();
}

function parseTag(tag: string): string {
  const colon = tag.indexOf(":");
  const name = (colon < 0 ? tag : tag.slice(0, colon)).toLowerCase();
  const value = colon < 0 ? undefined : tag.slice(colon + 1);
  if (!/^[\w-]+$/.test(name) || name.length > tagNameLengthMax) {
    const expected = `names of 1 to ${tagNameLengthMax} letters, digits, "_" and "-", before any ":",`;
    throw dnsErrors.invalidTag(tag, expected);
  }
  if (reservedTagNames.has(name)) {
    throw dnsErrors.invalidTag(tag, `other names than ${[...reservedTagNames].join(", ")}`);
  }
  if (value === undefined) return name;
  if (value.length > tagValueLengthMax || value.includes(",") || hasControls(value)) {
    const expected = `values of at most ${tagValueLengthMax} characters in one line, without commas,`;
    throw dnsErrors.invalidTag(tag, expected);
  }
  return `${name}:${value}`;
}
