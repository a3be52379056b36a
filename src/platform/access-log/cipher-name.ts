/** The public data set's name of a cipher suite. It writes those of TLS 1.3 as `AEAD-AES128-GCM-SHA256`. */
export function cipherName(name: string): string {
  const match = /^TLS_(AES|CHACHA20)_(.+)$/.exec(name);
  if (match === null) return name;
  const [, algorithm, rest] = match as unknown as [string, string, string];
  return algorithm === "AES"
    ? `AEAD-AES${rest.replaceAll("_", "-")}`
    : `AEAD-CHACHA20-${rest.replaceAll("_", "-")}`;
}
