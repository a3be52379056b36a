import type { Rights } from "../image.ts";

/** The EXIF tags that are read. All other EXIF data is passed on whole, or not at all. */
const tags = { orientation: 0x0112, artist: 0x013b, copyright: 0x8298 } as const;

/** The orientation, 1 to 8; 1 when it is absent or invalid. */
export function exifOrientation(exif: Uint8Array): number {
  const value = firstDirectory(exif).get(tags.orientation);
  return typeof value === "number" && value >= 1 && value <= 8 ? value : 1;
}

/** Artist and copyright. */
export function exifRights(exif: Uint8Array): Rights {
  const directory = firstDirectory(exif);
  const [copyright, artist] = [directory.get(tags.copyright), directory.get(tags.artist)];
  return {
    ...(typeof copyright === "string" && copyright !== "" ? { Copyright: copyright } : {}),
    ...(typeof artist === "string" && artist !== "" ? { Artist: artist } : {}),
  };
}

/** The wanted tags of the first directory. Damaged tags are ignored. */
function firstDirectory(exif: Uint8Array): Map<number, number | string> {
  const found = new Map<number, number | string>();
  let data = Buffer.from(exif.buffer, exif.byteOffset, exif.length);
  if (data.toString("latin1", 0, 6) === "Exif\0\0") data = data.subarray(6);
  const order = data.toString("latin1", 0, 2);
  if (data.length < 14 || (order !== "II" && order !== "MM")) return found;
  const isLittle = order === "II";
  const short = (at: number): number => (isLittle ? data.readUInt16LE(at) : data.readUInt16BE(at));
  const long = (at: number): number => (isLittle ? data.readUInt32LE(at) : data.readUInt32BE(at));
  const start = long(4);
  if (start + 2 > data.length) return found;
  const entries = short(start);
  for (let entry = 0; entry < entries; entry++) {
    const at = start + 2 + entry * 12;
    if (at + 12 > data.length) break;
    const [tag, type, count] = [short(at), short(at + 2), long(at + 4)];
    if (tag === tags.orientation && type === 3) found.set(tag, short(at + 8));
    if ((tag === tags.copyright || tag === tags.artist) && type === 2) {
      const from = count <= 4 ? at + 8 : long(at + 8);
      if (count > 4096 || from + count > data.length) continue;
      found.set(
        tag,
        data
          .toString("utf8", from, from + count)
          .replace(/(?<!\0)\0+$/, "")
          .replaceAll("\0", "; "),
      );
    }
  }
  return found;
}
