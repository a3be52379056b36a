import type { FieldGroup } from "./field-definition.ts";

/**
 * The client's address and its location from the geo database. Unknown text is empty, and an unknown country
 * is `XX`.
 */
export const ipFields: readonly FieldGroup[] = [
  ["Ip", "ip.src"],
  ["Bytes", "ip.src.lat ip.src.lon ip.src.city ip.src.postal_code ip.src.metro_code ip.src.region"],
  ["Bytes", "ip.src.region_code ip.src.timezone.name ip.src.continent"],
  ["Bytes", "ip.src.country", "XX"],
  ["Bytes", "ip.src.subdivision_1_iso_code ip.src.subdivision_2_iso_code"],
  ["Int", "ip.src.asnum"],
  ["Bool", "ip.src.is_in_european_union"],
  // Older names that stay valid.
  ["Int", "ip.geoip.asnum"],
  ["Bytes", "ip.geoip.country", "XX"],
  ["Bytes", "ip.geoip.continent ip.geoip.subdivision_1_iso_code ip.geoip.subdivision_2_iso_code"],
  ["Bool", "ip.geoip.is_in_european_union"],
];
