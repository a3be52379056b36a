import { parseIp } from "../../rules/values/ip.ts";

interface Range {
  first: bigint;
  last: bigint;
}

/** IPv4 addresses are stored as IPv4-mapped IPv6 addresses (RFC 4291 §2.5.5.2). */
const mapped = 0xffffn << 32n;
const everything: readonly Range[] = [{ first: 0n, last: (1n << 128n) - 1n }];

/** The addresses from which a token may be used. */
export class AddressSet {
  readonly #ranges: readonly Range[];

  /** Networks have the form `ADDRESS` or `ADDRESS/BITS`. An empty `included` includes all addresses. */
  constructor(included: readonly string[], excluded: readonly string[]) {
    const from = included.length === 0 ? everything : merged(included.map(rangeOf));
    this.#ranges = merged(excluded.map(rangeOf)).reduce(without, from);
  }

  /** False if the text is not an address. The scope id of a link-local address is ignored. */
  has(address: string): boolean {
    const value = numberOf(address.split("%", 1)[0]!);
    return value !== undefined && this.#ranges.some(({ first, last }) => first <= value && value <= last);
  }

  includes(other: AddressSet): boolean {
    return other.#ranges.every((inner) =>
      this.#ranges.some(({ first, last }) => first <= inner.first && inner.last <= last),
    );
  }
}

/** Whether the text is an address or a network such as 192.0.2.0/24. */
export function isNetwork(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  if (numberOf(address) === undefined || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (address.includes(":") ? 128 : 32));
}

function numberOf(address: string): bigint | undefined {
  const ip = parseIp(address);
  if (typeof ip === "number") return mapped | BigInt(ip);
  return ip === undefined ? undefined : BigInt(`0x${Buffer.from(ip, "latin1").toString("hex")}`);
}

function rangeOf(network: string): Range {
  const [address = "", bits] = network.split("/");
  const value = numberOf(address);
  if (value === undefined) throw new Error(`${network} is not a network`);
  const width = address.includes(":") ? 128 : 32;
  const free = BigInt(width - Number(bits ?? width));
  const first = (value >> free) << free;
  return { first, last: first + (1n << free) - 1n };
}

/** Sorts ranges and joins those that overlap or touch. */
function merged(ranges: readonly Range[]): Range[] {
  const result: Range[] = [];
  for (const { first, last } of ranges.toSorted((a, b) => (a.first < b.first ? -1 : 1))) {
    const before = result.at(-1);
    if (before === undefined || first > before.last + 1n) result.push({ first, last });
    else if (last > before.last) before.last = last;
  }
  return result;
}

function without(ranges: readonly Range[], removed: Range): Range[] {
  return ranges.flatMap(({ first, last }) =>
    removed.last < first || last < removed.first
      ? [{ first, last }]
      : [
          { first, last: removed.first - 1n },
          { first: removed.last + 1n, last },
        ].filter((range) => range.first <= range.last),
  );
}
