/** How long a response may be reused without revalidation (RFC 9111, 4.2.1). */
export interface Freshness {
  /** False when the origin forbids shared caches to store it (RFC 9111, 5.2.2). */
  isStorable: boolean;
  seconds: number;
}

const secondsMax = 31_536_000;

/** Reads Cache-Control, Expires and Age. A response without a lifetime is revalidated each time. */
export function freshnessOf(headers: ReadonlyMap<string, string>, nowMs: number): Freshness {
  const directives = new Map(
    (headers.get("cache-control") ?? "")
      .toLowerCase()
      .split(",")
      .map((each): [string, string | undefined] => {
        const [name = "", value] = each.trim().split("=", 2);
        return [name, value];
      }),
  );
  const isStorable =
    !directives.has("no-store") && !directives.has("private") && headers.get("vary")?.trim() !== "*";
  if (directives.has("no-cache")) return { isStorable, seconds: 0 };
  const stated =
    seconds(directives.get("s-maxage")) ?? seconds(directives.get("max-age")) ?? expires(headers, nowMs);
  return {
    isStorable,
    seconds: Math.max(0, Math.min(secondsMax, (stated ?? 0) - (seconds(headers.get("age")) ?? 0))),
  };
}

function seconds(text: string | undefined): number | undefined {
  const digits = /^"?(\d{1,10})"?$/.exec(text?.trim() ?? "")?.[1];
  return digits === undefined ? undefined : Number(digits);
}

function expires(headers: ReadonlyMap<string, string>, nowMs: number): number | undefined {
  const at = Date.parse(headers.get("expires") ?? "");
  return Number.isNaN(at) ? undefined : (at - nowMs) / 1000;
}
