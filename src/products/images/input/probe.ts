import { open } from "node:fs/promises";
import { readAvif } from "./avif.ts";
import { imageErrors } from "../errors.ts";
import { exifOrientation, exifRights } from "./exif.ts";
import { imageLimits, type Probe, type SourceFormat } from "../image.ts";
import { Damaged, Reader } from "./reader.ts";
import { probeSvg } from "../svg/probe.ts";
import { MalformedXml } from "../svg/xml.ts";

/** Bytes that `sniff` needs. */
export const sniffBytes = 64;

/** The format according to the first bytes. The file name and the declared type are ignored. */
export function sniff(head: Uint8Array): SourceFormat | undefined {
  const text = Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, 16)).toString("latin1");
  if (text.startsWith("\xff\xd8\xff")) return "jpeg";
  if (text.startsWith("\x89PNG\r\n\x1a\n")) return "png";
  if (text.startsWith("GIF87a") || text.startsWith("GIF89a")) return "gif";
  if (text.startsWith("RIFF") && text.slice(8, 12) === "WEBP") return "webp";
  if (text.slice(4, 8) === "ftyp" && brands(head).some((brand) => /^avi[fs]$/.test(brand))) return "avif";
  return svgPattern.test(Buffer.from(head).toString("latin1")) ? "svg" : undefined;
}

/** The brands of an ISO media file (ftyp box), as far as they are present. */
function brands(head: Uint8Array): string[] {
  const text = Buffer.from(head).toString("latin1");
  const end = Math.min(head.length, Buffer.from(head).readUInt32BE(0));
  const brandOffsets = Array.from({ length: Math.max(0, Math.floor((end - 8) / 4)) }, (_, i) => 8 + 4 * i);
  // The second word is a version.
  return brandOffsets.filter((at) => at !== 12).map((at) => text.slice(at, at + 4));
}

/** Possible beginnings of an SVG. The header parser decides whether it is one. */
const svgPattern = /^(?:\xef\xbb\xbf)?\s*<(?:\?xml\s|svg[\s>]|!--|!DOCTYPE\s+svg[\s>])/;

/** Describes other file types that users upload by mistake, for the error message. */
export function describeHead(head: Uint8Array): string {
  if (head.length === 0) return "an empty file";
  const text = Buffer.from(head).toString("latin1");
  if (text.slice(4, 8) === "ftyp") {
    const brand = text.slice(8, 12);
    if (sniff(head) === "avif") return "AVIF, which is delivered but not accepted";
    return /^(hei|hev|mif)/.test(brand) ? "HEIC" : "a video";
  }
  if (/^\s*<(\?xml|svg|!--|!doctype\s+svg)/i.test(text)) return "SVG or XML";
  if (/^\s*<(!doctype|html)/i.test(text)) return "HTML";
  if (/^(II\*\0|MM\0\*)/.test(text)) return "TIFF";
  if (text.startsWith("BM")) return "BMP";
  if (text.startsWith("%PDF")) return "PDF";
  if (text.startsWith("\0\0\x01\0")) return "an icon";
  return "something else";
}

/** Reads the header of a file, and of an animation its frames, without decoding. */
export async function probe(path: string): Promise<Probe> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const reader = new Reader(size, async (buffer, position) => {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
      return bytesRead;
    });
    return await probeReader(reader);
  } finally {
    await file.close();
  }
}

/** As `probe`, for bytes in memory. */
export async function probeBytes(bytes: Uint8Array): Promise<Probe> {
  return probeReader(
    new Reader(bytes.length, async (buffer, at) => Buffer.from(bytes.subarray(at)).copy(buffer)),
  );
}

async function probeReader(reader: Reader): Promise<Probe> {
  const head = await reader.bytes(0, Math.min(sniffBytes, reader.sizeBytes));
  const format = sniff(head);
  if (format === undefined) throw imageErrors.invalidFormat(describeHead(head));
  try {
    const found = await readers[format](reader);
    if (found.width < 1 || found.height < 1) throw new Damaged("its sides are 0 pixels long");
    return { format, ...found };
  } catch (error) {
    if (error instanceof Damaged || error instanceof MalformedXml)
      throw imageErrors.invalidFormat(`a damaged ${format.toUpperCase()}: ${error.message}`);
    throw error;
  }
}

type Found = Omit<Probe, "format">;
const still = { orientation: 1, frames: 1, hasAlpha: false, hasPalette: false, isProgressive: false };
const exifBytesMax = 64 * 1024;

/** A document type and comments may precede the root of an SVG. */
const svgHeadBytes = 64 * 1024;

const readers: Record<SourceFormat, (reader: Reader) => Promise<Found>> = {
  async jpeg(reader) {
    let exif: Buffer | undefined;
    let found: Found | undefined;
    let components = 0;
    for (let at = 2; ;) {
      const head = await reader.bytes(at, 4);
      if (head[0] !== 0xff) throw new Damaged("a marker is missing");
      const marker = head[1]!;
      if (marker === 0xff) {
        at += 1; // fill byte
        continue;
      }
      // Decoders look for the next marker after these, which would not be where a length leads.
      if (marker < 0xc0 || (marker >= 0xd0 && marker <= 0xd8)) throw new Damaged("a marker is out of place");
      const length = head.readUInt16BE(2);
      const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
      if (isFrame) {
        const frame = await reader.bytes(at + 4, 6);
        if (found !== undefined) throw new Damaged("it has two frame headers");
        components = frame[5]!;
        found = {
          ...still,
          width: frame.readUInt16BE(3),
          height: frame.readUInt16BE(1),
          isProgressive: (marker & 3) === 2,
        };
      }
      if (marker === 0xda && found !== undefined) {
        // Decoders hold the coefficients of several scans, as those of a progressive picture.
        found.isProgressive ||= (await reader.bytes(at + 4, 1))[0]! < components;
        if (exif === undefined) return found;
        return { ...found, orientation: exifOrientation(exif), rights: exifRights(exif) };
      }
      if (marker === 0xda || marker === 0xd9 || length < 2) throw new Damaged("it has no frame header");
      if (marker === 0xe1 && length > 8 && exif === undefined) {
        const app = await reader.bytes(at + 4, length - 2);
        if (app.toString("latin1", 0, 6) === "Exif\0\0") exif = Buffer.from(app.subarray(6));
      }
      at += 2 + length;
    }
  },

  async png(reader) {
    const header = await reader.bytes(8, 25);
    if (header.toString("latin1", 4, 8) !== "IHDR") throw new Damaged("it has no header");
    const colorType = header[17]!;
    const found = {
      ...still,
      width: header.readUInt32BE(8),
      height: header.readUInt32BE(12),
      hasAlpha: colorType === 4 || colorType === 6,
      hasPalette: colorType === 3,
    };
    // Only chunks before the pixels matter here.
    for (let at = 33; at + 12 <= reader.sizeBytes;) {
      const head = await reader.bytes(at, 8);
      const [length, type] = [head.readUInt32BE(0), head.toString("latin1", 4, 8)];
      if (type === "IDAT" || type === "IEND") return found;
      if (type === "tRNS") found.hasAlpha = true;
      if (type === "eXIf" && length <= exifBytesMax)
        found.orientation = exifOrientation(await reader.bytes(at + 8, length));
      at += 12 + length;
    }
    throw new Damaged("it has no pixels");
  },

  async gif(reader) {
    const descriptor = await reader.bytes(6, 7);
    const found = {
      ...still,
      width: descriptor.readUInt16LE(0),
      height: descriptor.readUInt16LE(2),
      hasPalette: true,
    };
    let at = 13 + tableBytes(descriptor[4]!);
    let frames = 0;
    const skipBlocks = async (): Promise<void> => {
      for (let length = -1; length !== 0; at += 1 + length) length = (await reader.bytes(at, 1))[0]!;
    };
    try {
      while (frames <= imageLimits.framesMax) {
        const kind = (await reader.bytes(at, 1))[0]!;
        if (kind === 0x3b) break;
        if (kind === 0x21) {
          const [, label, , flags] = await reader.bytes(at, 4);
          if (label === 0xf9 && (flags! & 1) === 1) found.hasAlpha = true;
          at += 2;
        } else if (kind === 0x2c) {
          frames += 1;
          at += 10 + tableBytes((await reader.bytes(at, 10))[9]!) + 1;
        } else throw new Damaged("a block is unknown");
        await skipBlocks();
      }
    } catch (error) {
      // A truncated animation still shows its complete frames.
      if (!(error instanceof Damaged) || frames === 0) throw error;
    }
    if (frames === 0) throw new Damaged("it has no frames");
    return { ...found, frames };
  },

  async webp(reader) {
    const found = { ...still, width: 0, height: 0, frames: 0 };
    for (let at = 12; at + 8 <= reader.sizeBytes && found.frames <= imageLimits.framesMax;) {
      const head = await reader.bytes(at, 8);
      const [type, length] = [head.toString("latin1", 0, 4), head.readUInt32LE(4)];
      if (type === "VP8X") {
        const body = await reader.bytes(at + 8, 10);
        found.hasAlpha = (body[0]! & 0x10) !== 0;
        found.width = 1 + body.readUIntLE(4, 3);
        found.height = 1 + body.readUIntLE(7, 3);
      } else if (type === "ANMF") found.frames += 1;
      else if (type === "VP8 " && found.width === 0) {
        const body = await reader.bytes(at + 8, 10);
        if (body.readUIntBE(3, 3) !== 0x9d012a) throw new Damaged("its frame header is wrong");
        found.width = body.readUInt16LE(6) & 0x3fff;
        found.height = body.readUInt16LE(8) & 0x3fff;
      } else if (type === "VP8L" && found.width === 0) {
        const body = await reader.bytes(at + 8, 5);
        if (body[0] !== 0x2f) throw new Damaged("its frame header is wrong");
        const bits = body.readUInt32LE(1);
        found.width = 1 + (bits & 0x3fff);
        found.height = 1 + ((bits >> 14) & 0x3fff);
        found.hasAlpha = ((bits >>> 28) & 1) === 1;
      } else if (type === "EXIF" && length <= exifBytesMax && at + 8 + length <= reader.sizeBytes) {
        found.orientation = exifOrientation(await reader.bytes(at + 8, length));
      }
      at += 8 + length + (length & 1);
    }
    if (found.width === 0) throw new Damaged("it has no frame header");
    return { ...found, frames: Math.max(1, found.frames) };
  },

  async avif(reader) {
    return { ...still, ...(await readAvif(reader)) };
  },

  async svg(reader) {
    const head = await reader.bytes(0, Math.min(svgHeadBytes, reader.sizeBytes));
    return { ...still, hasAlpha: true, ...probeSvg(head.toString("utf8")) };
  },
};

const tableBytes = (flags: number): number => ((flags & 0x80) === 0 ? 0 : 3 << ((flags & 7) + 1));
