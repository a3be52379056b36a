/** TLS 1.3 suites name no key exchange; the public name has only the cipher: `AEAD-AES128-GCM-SHA256`. */
export function cipherName(name: string): string {
  const match = /^TLS_(AES|CHACHA20)_(.+)$/.exec(name);
  if (match === null) return name;
  const [, algorithm, rest] = match as unknown as [string, string, string];
  return algorithm === "AES"
    ? `AEAD-AES${rest.replaceAll("_", "-")}`
    : `AEAD-CHACHA20-${rest.replaceAll("_", "-")}`;
}
