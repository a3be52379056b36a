/** Text of UTF-8 without control characters and \r, which a field for text would change; undefined for other bytes. */
export function textOf(value: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(value);
    // oxlint-disable-next-line no-control-regex
    return /[\0-\x08\x0e-\x1f]|\r/.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Lines of an address, sixteen bytes, and their letters. */
export function hexOf(value: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < value.length; at += 16) {
    const part = [...value.subarray(at, at + 16)];
    const digits = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const letters = part.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(4, "0")}  ${digits.padEnd(47)}  ${letters}`);
  }
  return lines.join("\n");
}
