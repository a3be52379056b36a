import { animation, fourColors, noise, scenery } from "./fixtures.ts";
import type { ImagePlatform } from "./platform.ts";

/** Damaged files: truncated, with flipped bits, inserted bytes, or absurd numbers in their headers. */
export async function seeds(): Promise<Buffer[]> {
  const photo = await scenery(96, 64);
  const drawing = await fourColors(64, 48);
  return [
    await photo.clone().jpeg({ quality: 80 }).toBuffer(),
    await photo.clone().jpeg({ progressive: true }).withMetadata({ orientation: 6 }).toBuffer(),
    await photo
      .clone()
      .jpeg()
      .withExif({ IFD0: { Copyright: "(c)", Artist: "Somebody" } })
      .toBuffer(),
    await drawing.clone().png().toBuffer(),
    await drawing.clone().ensureAlpha(0.5).png().withIccProfile("p3").toBuffer(),
    await drawing.clone().png({ palette: true }).toBuffer(),
    await photo.clone().gif().toBuffer(),
    await photo.clone().webp().toBuffer(),
    await drawing.clone().ensureAlpha(0.5).webp({ lossless: true }).toBuffer(),
    await photo.clone().toColourspace("cmyk").jpeg().toBuffer(),
    await animation("gif", { width: 40, height: 30, frames: 4 }),
    await animation("webp", { width: 40, height: 30, frames: 4 }),
    await photo.clone().avif({ effort: 0 }).toBuffer(),
    await drawing.clone().ensureAlpha(0.5).avif({ effort: 0 }).toBuffer(),
    Buffer.from(
      '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="64" height="48"><style>.a{fill:red}</style>' +
        '<g class="a" transform="scale(2)"><path d="M0 0h9v9z"/><text>a &amp; b</text><a href="#a"/></g></svg>',
    ),
  ];
}

/** The damage of an index is always the same. */
export function damaged(whole: readonly Buffer[], index: number): Buffer {
  const random = noise(64, index + 1);
  let at = 0;
  const next = (below: number): number => {
    at = (at + 4) % 60;
    return random.readUInt32LE(at) % Math.max(1, below);
  };
  const seed = whole[index % whole.length]!;
  const bytes = Buffer.from(seed);
  switch (next(6)) {
    case 0:
      return bytes.subarray(0, next(bytes.length));
    case 1: {
      const flips = 1 + next(12);
      for (let i = 0; i < flips; i++) bytes[next(bytes.length)]! ^= 1 << next(8);
      return bytes;
    }
    case 2: {
      // Sizes, counts and lengths are near the beginning.
      const place = next(Math.min(64, bytes.length - 4));
      bytes.writeUInt32BE([0, 0xffffffff, 0x7fffffff, 65_535, 0x10000, 0x80000000][next(6)]!, place);
      return bytes;
    }
    case 3: {
      const place = next(bytes.length);
      return Buffer.concat([
        bytes.subarray(0, place),
        noise(1 + next(200), index + 9),
        bytes.subarray(place),
      ]);
    }
    case 4: {
      const [from, length] = [next(bytes.length), next(200)];
      return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + length)]);
    }
    default: {
      const other = whole[next(whole.length)]!;
      return Buffer.concat([bytes.subarray(0, next(bytes.length)), other.subarray(next(other.length))]);
    }
  }
}

const options = [
  "w=40,f=webp",
  "w=30,h=30,fit=cover,gravity=auto,f=jpeg",
  "w=20,f=png,metadata=keep",
  "w=50,rotate=90,blur=4,f=avif",
  "trim=border,f=gif,metadata=copyright",
  "fit=pad,w=40,h=40,background=red,brightness=1.2,f=webp",
  "f=json",
] as const;

export interface Outcome {
  refused: number;
  undecodable: number;
  pictures: number;
  slowestMs: number;
  slowest: number;
  faults: string[];
}

/** Uploads and transforms one damaged file, and records the outcome. */
export async function tryDamaged(
  platform: ImagePlatform,
  bytes: Buffer,
  index: number,
  outcome: Outcome,
): Promise<void> {
  const startedAt = performance.now();
  const answer = await platform.upload(bytes);
  const code = answer.body.errors[0]?.code;
  if (answer.status !== 200) {
    outcome.refused += 1;
    if (answer.status !== 400 || (code !== 5400 && code !== 5401))
      outcome.faults.push(`upload ${index}: ${answer.status} ${JSON.stringify(answer.body)}`);
  } else {
    const { id } = answer.body.result as { id: string };
    const asked = options[index % options.length]!;
    const {
      status,
      headers,
      bytes: made,
    } = await platform.deliver(id, asked, { accept: "application/json" });
    const type = headers.get("content-type") ?? "";
    if (status === 200 && (type.startsWith("image/") || asked === "f=json")) outcome.pictures += 1;
    else if (status === 422 || status === 400 || status === 504) {
      outcome.undecodable += 1;
      const envelope = JSON.parse(made.toString()) as { success: boolean; errors: { code: number }[] };
      if (envelope.success || envelope.errors.length !== 1)
        outcome.faults.push(`transform ${index}: ${made.toString()}`);
    } else outcome.faults.push(`transform ${index}, ${asked}: ${status} ${made.toString().slice(0, 200)}`);
    await platform.api("DELETE", `/v1/${id}`);
  }
  const tookMs = performance.now() - startedAt;
  if (tookMs > outcome.slowestMs) [outcome.slowestMs, outcome.slowest] = [tookMs, index];
}

/** Runs several at a time until all are done. */
export async function tryAll(platform: ImagePlatform, from: number, count: number): Promise<Outcome> {
  const outcome: Outcome = { refused: 0, undecodable: 0, pictures: 0, slowestMs: 0, slowest: 0, faults: [] };
  const whole = await seeds();
  let next = from;
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      while (next < from + count) {
        const index = next++;
        await tryDamaged(platform, damaged(whole, index), index, outcome);
      }
    }),
  );
  return outcome;
}
