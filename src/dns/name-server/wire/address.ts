/** The 4 bytes of an IPv4 address. */
export const ipv4Bytes = (address: string): Buffer => Buffer.from(address.split(".").map(Number));

/** The 16 bytes of an IPv6 address in any notation. */
export function ipv6Bytes(address: string): Buffer {
  const spelling = address.replace(/(?<![\d.])[\d.]+$/, (tail) => {
    if (!tail.includes(".")) return tail;
    const bytes = ipv4Bytes(tail);
    return `${bytes.toString("hex", 0, 2)}:${bytes.toString("hex", 2)}`;
  });
  const [head = "", tail] = spelling.split("::");
  const words = (text: string): number[] =>
    text === "" ? [] : text.split(":").map((word) => Number.parseInt(word, 16));
  const [left, right] = [words(head), words(tail ?? "")];
  const bytes = Buffer.alloc(16);
  for (const [index, word] of left.entries()) bytes.writeUInt16BE(word, index * 2);
  for (const [index, word] of right.entries()) bytes.writeUInt16BE(word, 16 - (right.length - index) * 2);
  return bytes;
}

/** The 4 or 16 bytes of an IP address. */
export const addressBytes = (address: string): Buffer =>
  address.includes(":") ? ipv6Bytes(address) : ipv4Bytes(address);

/** A peer's address without a scope. IPv4-mapped addresses are returned as IPv4. */
export const plainAddress = (address: string): string => {
  if (!address.includes(":")) return address;
  if (address.startsWith("::ffff:") && address.includes(".")) return address.slice(7);
  const scope = address.indexOf("%");
  return scope < 0 ? address : address.slice(0, scope);
};
