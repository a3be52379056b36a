import { writeFileSync } from "node:fs";
import { isIP } from "node:net";

export type MmdbValue =
  | string
  | number
  | boolean
  | readonly MmdbValue[]
  | { readonly [key: string]: MmdbValue };

/** Writes a small database of addresses in the MaxMind DB format (version 2.0), with 24-bit records. */
export function writeMmdb(
  file: string,
  entries: Record<string, MmdbValue>,
  { databaseType = "Test", ipVersion = 6 }: { databaseType?: string; ipVersion?: 4 | 6 } = {},
): void {
  type Node = [Branch, Branch];
  type Branch = Node | { offset: number } | undefined;
  const root: Node = [undefined, undefined];
  const data: Buffer[] = [];
  let dataBytes = 0;
  for (const [network, record] of Object.entries(entries)) {
    const encoded = encode(record);
    const bits = networkBits(network, ipVersion);
    let node = root;
    for (const bit of bits.slice(0, -1)) {
      const next = node[bit];
      if (next !== undefined && "offset" in next) throw new Error(`${network} lies in a network before it`);
      node = next ?? (node[bit] = [undefined, undefined]);
    }
    node[bits.at(-1)!] = { offset: dataBytes };
    data.push(encoded);
    dataBytes += encoded.length;
  }

  const nodes: Node[] = [root];
  for (const node of nodes) for (const branch of node) if (Array.isArray(branch)) nodes.push(branch);
  const indexes = new Map(nodes.map((node, i) => [node, i]));
  const tree = Buffer.alloc(nodes.length * 6);
  nodes.forEach((node, i) => {
    node.forEach((branch, side) => {
      const value =
        branch === undefined
          ? nodes.length
          : Array.isArray(branch)
            ? indexes.get(branch)!
            : nodes.length + 16 + branch.offset;
      tree.writeUIntBE(value, i * 6 + side * 3, 3);
    });
  });
  const metadata = encode({
    node_count: nodes.length,
    record_size: 24,
    ip_version: ipVersion,
    database_type: databaseType,
    languages: ["en"],
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1,
    description: { en: "for tests" },
  });
  const marker = Buffer.from("\xab\xcd\xefMaxMind.com", "latin1");
  writeFileSync(file, Buffer.concat([tree, Buffer.alloc(16), ...data, marker, metadata]));
}

/** The bits of a network's prefix, from the tree's root. IPv4 stands in `::/96`. */
function networkBits(network: string, ipVersion: 4 | 6): (0 | 1)[] {
  const [address = "", length] = network.split("/");
  const isV4 = isIP(address) === 4;
  const bytes = isV4 ? address.split(".").map(Number) : v6Bytes(address);
  const bits = bytes.flatMap((byte) =>
    [7, 6, 5, 4, 3, 2, 1, 0].map((place) => ((byte >> place) & 1) as 0 | 1),
  );
  const prefix = bits.slice(0, Number(length ?? bits.length));
  return isV4 && ipVersion === 6 ? [...Array.from({ length: 96 }, () => 0 as const), ...prefix] : prefix;
}

function v6Bytes(address: string): number[] {
  const [head = "", tail] = address.split("::");
  const groups = (text: string): number[] =>
    text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
  const [left, right] = [groups(head), groups(tail ?? "")];
  const middle = Array.from({ length: 8 - left.length - right.length }, () => 0);
  return [...left, ...middle, ...right].flatMap((group) => [group >> 8, group & 255]);
}

const types = { text: 2, double: 3, uint32: 6, map: 7, array: 11, boolean: 14 } as const;

function encode(value: MmdbValue): Buffer {
  if (typeof value === "string") {
    const bytes = Buffer.from(value);
    return Buffer.concat([control(types.text, bytes.length), bytes]);
  }
  if (typeof value === "boolean") return control(types.boolean, value ? 1 : 0);
  if (typeof value === "number") {
    const isInteger = Number.isInteger(value) && value >= 0;
    const bytes = Buffer.alloc(isInteger ? 4 : 8);
    if (isInteger) bytes.writeUInt32BE(value);
    else bytes.writeDoubleBE(value);
    return Buffer.concat([control(isInteger ? types.uint32 : types.double, bytes.length), bytes]);
  }
  if (Array.isArray(value)) return Buffer.concat([control(types.array, value.length), ...value.map(encode)]);
  const pairs = Object.entries(value as { [key: string]: MmdbValue });
  return Buffer.concat([
    control(types.map, pairs.length),
    ...pairs.flatMap(([key, item]) => [encode(key), encode(item)]),
  ]);
}

/** A type and a size; types above 7 have a byte of their own. */
function control(type: number, size: number): Buffer {
  const short = size < 29 ? size : size < 285 ? 29 : 30;
  const more = size < 29 ? [] : size < 285 ? [size - 29] : [(size - 285) >> 8, (size - 285) & 255];
  return Buffer.from(type > 7 ? [short, type - 7, ...more] : [(type << 5) | short, ...more]);
}
