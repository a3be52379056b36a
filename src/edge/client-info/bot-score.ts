import type { IncomingHttpHeaders } from "node:http";

export interface BotManagement {
  /** From 1, certainly automated, to 99, certainly a person. */
  score: number;
  verifiedBot: boolean;
  staticResource: boolean;
  corporateProxy: boolean;
  jsDetection: { passed: boolean };
  detectionIds: Record<string, never>;
  /** Fingerprints of the client program, from its TLS ClientHello. */
  ja3Hash?: string;
  ja4?: string;
  // The same values under the names of the specification.
  verified_bot: boolean;
  static_resource: boolean;
}

/**
 * Estimates the bot score from the request alone: 1 for a client whose User-Agent names a program, 2 for one
 * without a User-Agent, and for a browser 99 minus deductions for missing headers. This cannot prove the
 * identity of a bot, so no bot is verified.
 */
export function scoreBot(
  headers: IncomingHttpHeaders,
  path: string,
  isKnownBot: (userAgent: string) => boolean,
): BotManagement {
  const staticResource = isStatic(path);
  return {
    score: score(headers, isKnownBot),
    verifiedBot: false,
    staticResource,
    corporateProxy: false,
    jsDetection: { passed: false },
    detectionIds: {},
    verified_bot: false,
    static_resource: staticResource,
  };
}

/** Headers that browsers always send, and the deduction for their absence. */
const deductions: readonly [header: string, points: number][] = [
  ["accept-language", 40],
  ["accept", 20],
  ["accept-encoding", 15],
];

function score(headers: IncomingHttpHeaders, isKnownBot: (userAgent: string) => boolean): number {
  const userAgent = headers["user-agent"] ?? "";
  if (userAgent === "") return 2;
  if (isKnownBot(userAgent)) return 1;
  return deductions.reduce(
    (sum, [header, points]) => (headers[header] === undefined ? sum - points : sum),
    99,
  );
}

const staticEndings: ReadonlySet<string> = new Set(
  (
    "7z apk avi avif bin bmp bz2 class css csv dmg doc docx ejs eot eps exe flac gif gz ico iso jar jpeg jpg js mid " +
    "midi mkv mp3 mp4 ogg otf pdf pict pls png ppt pptx ps rar svg svgz swf tar tif tiff ttf webm webp woff woff2 xls " +
    "xlsx zip zst"
  ).split(" "),
);

function isStatic(path: string): boolean {
  const [withoutQuery = ""] = path.split("?", 1);
  const file = withoutQuery.slice(withoutQuery.lastIndexOf("/") + 1);
  const dot = file.lastIndexOf(".");
  return dot >= 0 && staticEndings.has(file.slice(dot + 1).toLowerCase());
}
