/** The permissions for reading and changing a zone's DNS. */
export const dnsRead = { scope: "zone", permission: "dns_records:read" } as const;
export const dnsEdit = { scope: "zone", permission: "dns_records:edit" } as const;
