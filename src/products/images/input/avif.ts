import { Damaged, type Reader } from "./reader.ts";

interface Box {
  type: string;
  /** Offset of the box's content. */
  start: number;
  end: number;
}

/** Sibling boxes per level; enough for any picture, and few enough to read at once. */
const boxesMax = 1000;

async function boxesOf(reader: Reader, start: number, end: number): Promise<Box[]> {
  const boxes: Box[] = [];
  for (let at = start; at + 8 <= end && boxes.length < boxesMax;) {
    const head = await reader.bytes(at, 8);
    const [size, type] = [head.readUInt32BE(0), head.toString("latin1", 4, 8)];
    const isLarge = size === 1;
    const length = isLarge ? Number((await reader.bytes(at + 8, 8)).readBigUInt64BE()) : size || end - at;
    const headBytes = isLarge ? 16 : 8;
    if (length < headBytes) throw new Damaged("a box is shorter than its head");
    boxes.push({ type, start: at + headBytes, end: Math.min(end, at + length) });
    at += length;
  }
  return boxes;
}

const find = (boxes: readonly Box[], type: string): Box => {
  const found = boxes.find((box) => box.type === type);
  if (found === undefined) throw new Damaged(`it has no ${type} box`);
  return found;
};

const alphaTypes = ["urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1"];

/** Reads the header of an AVIF: its upright primary image, since the decoder applies the rotation. */
export async function readAvif(
  reader: Reader,
): Promise<{ width: number; height: number; hasAlpha: boolean }> {
  const meta = find(await boxesOf(reader, 0, reader.sizeBytes), "meta");
  const boxes = await boxesOf(reader, meta.start + 4, meta.end);
  const primary = find(boxes, "pitm");
  const isLongId = (await reader.bytes(primary.start, 1))[0]! > 0;
  const primaryId = (await reader.bytes(primary.start + 4, isLongId ? 4 : 2)).readUIntBE(0, isLongId ? 4 : 2);
  const shared = find(boxes, "iprp");
  const described = await boxesOf(reader, shared.start, shared.end);
  const container = find(described, "ipco");
  const properties = await boxesOf(reader, container.start, container.end);
  const own = await propertiesOf(reader, find(described, "ipma"), primaryId);

  let size: { width: number; height: number } | undefined;
  let isTurned = false;
  for (const { type, start } of own
    .map((index) => properties[index - 1])
    .filter((box) => box !== undefined)) {
    if (type === "ispe") {
      const extent = await reader.bytes(start + 4, 8);
      size = { width: extent.readUInt32BE(0), height: extent.readUInt32BE(4) };
    } else if (type === "irot") isTurned = ((await reader.bytes(start, 1))[0]! & 1) === 1;
  }
  if (size === undefined) throw new Damaged("it has no size");
  let hasAlpha = false;
  for (const { type, start, end } of properties)
    if (type === "auxC") {
      const name = (await reader.bytes(start + 4, Math.min(64, end - start - 4))).toString("latin1");
      hasAlpha ||= alphaTypes.some((known) => name.startsWith(known));
    }
  return {
    width: isTurned ? size.height : size.width,
    height: isTurned ? size.width : size.height,
    hasAlpha,
  };
}

/** Indexes of the properties of an image. */
async function propertiesOf(reader: Reader, { start, end }: Box, id: number): Promise<number[]> {
  const head = await reader.bytes(start, 8);
  const idBytes = head[0]! > 0 ? 4 : 2;
  const indexBytes = (head[3]! & 1) === 1 ? 2 : 1;
  let at = start + 8;
  for (let left = head.readUInt32BE(4); left > 0 && at + idBytes + 1 <= end; left--) {
    const entry = await reader.bytes(at, idBytes + 1);
    const count = entry[idBytes]!;
    at += idBytes + 1;
    if (entry.readUIntBE(0, idBytes) === id) {
      const indexes = await reader.bytes(at, count * indexBytes);
      // The highest bit marks an essential property.
      const value = indexBytes === 2 ? 0x7fff : 0x7f;
      return Array.from({ length: count }, (_, i) => indexes.readUIntBE(i * indexBytes, indexBytes) & value);
    }
    at += count * indexBytes;
  }
  return [];
}
