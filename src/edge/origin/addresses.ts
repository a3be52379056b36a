/**
 * The client address of a script's own request. Its connection comes from this machine, but it is trusted no
 * more than a visitor. An address of the discard prefix (RFC 6666).
 */
export const scriptAddress = "100::1";

/** Converts an IPv4-mapped IPv6 address to IPv4. */
export const plainAddress = (address: string): string =>
  address.startsWith("::ffff:") ? address.slice(7) : address;
