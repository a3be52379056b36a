/** Who may read how the names of a zone are answered, and who may change it. */
export const dnsRead = { scope: "zone", permission: "dns_records:read" } as const;
export const dnsEdit = { scope: "zone", permission: "dns_records:edit" } as const;
