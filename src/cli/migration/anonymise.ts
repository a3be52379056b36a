import type { Document } from "./document.ts";
import type { DescribedResource } from "./product.ts";

/** 198.18.0.0/15 and 2001:db8::/32 are for tests and documentation (RFC 2544, RFC 3849). */
const ipv4First = (198 << 24) | (18 << 16);
const ipv4Count = 1 << 17;

/**
 * Replaces the addresses and texts of DNS records, with their comments and tags. Equal values stay equal and different
 * ones different; the numbers follow the order of appearance, so no value can be computed back.
 */
export function anonymise(document: Document): Document {
  const seen = new Map<string, Map<string, number>>();
  const numberOf = (kind: string, value: string): number => {
    const values = seen.get(kind) ?? new Map<string, number>();
    seen.set(kind, values);
    if (!values.has(value)) values.set(value, values.size + 1);
    return values.get(value)!;
  };
  const resources = document.resources.map((resource) =>
    resource.product === "dns_record" ? anonymousRecord(resource, numberOf) : resource,
  );
  return { ...document, resources };
}

function anonymousRecord(
  resource: DescribedResource,
  numberOf: (kind: string, value: string) => number,
): DescribedResource {
  const { value } = resource;
  const [type, content] = [String(value["type"]), String(value["content"])];
  const other: Record<string, (content: string) => string> = {
    A: (each) => ipv4Of(numberOf("A", each)),
    AAAA: (each) => ipv6Of(numberOf("AAAA", each)),
    TXT: (each) => `"text ${numberOf("TXT", each)}"`,
  };
  const replaced = {
    ...value,
    content: other[type]?.(content) ?? content,
    comment: typeof value["comment"] === "string" ? `comment ${numberOf("comment", value["comment"])}` : null,
    tags: (value["tags"] as string[]).map((tag) => `tag:${numberOf("tag", tag)}`),
  };
  return { ...resource, key: resource.key.replace(content, () => replaced.content), value: replaced };
}

function ipv4Of(number: number): string {
  const address = (ipv4First + (number % ipv4Count)) >>> 0;
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".");
}

const ipv6Of = (number: number): string =>
  `2001:db8::${Math.floor(number / 65_536).toString(16)}:${(number % 65_536).toString(16)}`.replace(
    "::0:",
    "::",
  );
