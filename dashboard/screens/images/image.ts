/** An image as the API shows it. */
export interface Image {
  id: string;
  filename: string;
  uploaded: string;
  requireSignedURLs: boolean;
  /** Its address in each variant. A draft has them too, and no picture. */
  variants: string[];
  meta: Record<string, unknown>;
  creator: string | null;
  draft?: true;
}

export interface Variant {
  id: string;
  options: {
    fit: string;
    width: number;
    height: number;
    metadata: string;
    blur?: number;
    browser_ttl?: number;
  };
  neverRequireSignedURLs: boolean;
}

export interface SigningKey {
  name: string;
  value: string;
}

export const base = "/accounts/{account_id}/images/v1";

export const imagesPath = (account: string): string => `/accounts/${account}/images/v1`;

/** The path of an image below /client/v4. */
export const imagePath = (account: string, id: string): string =>
  `${imagesPath(account)}/${encodeURIComponent(id)}`;

/** The address of a picture without its variant. */
export const baseOf = ({ variants }: Image): string => variants[0]!.replace(/[^/]*$/, "");

export const nameOf = ({ filename, id }: Image): string => filename || id;

/** An address that is valid until a time, in seconds since 1970. */
export async function signed(url: string, key: string, expires: number): Promise<string> {
  const { pathname, origin } = new URL(url);
  const text = `${pathname}?exp=${expires}`;
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", encoder.encode(key), algorithm, false, ["sign"]);
  const bytes = new Uint8Array(await crypto.subtle.sign("HMAC", imported, encoder.encode(text)));
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${origin}${text}&sig=${hex}`;
}
