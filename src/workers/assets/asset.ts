import { assetErrors } from "./errors.ts";
import { assetLimits } from "./limits.ts";

/** The owner of assets: a script of an account, or a customer's script in a dispatch namespace. */
export interface AssetOwner {
  accountId: string;
  /** Undefined for a script of the account itself. */
  namespaceId?: string | undefined;
  scriptName: string;
  /**
   * The id of the script with the name; undefined if there is none yet. A later script of the same name
   * cannot use its files.
   */
  scriptId?: string | undefined;
}

/** The scope in which content with the same hash is shared: a namespace, or all scripts of an account. */
export const scopeOf = ({ accountId, namespaceId }: AssetOwner): string => namespaceId ?? accountId;

export interface ManifestEntry {
  /** Decoded, with a leading slash. */
  path: string;
  hash: string;
  sizeBytes: number;
}

/** Stored content. The content of a hash never changes. */
export interface AssetFile {
  hash: string;
  sizeBytes: number;
  /** The type from the upload; "" for content without a type, null if the upload had none. */
  contentType: string | null;
  blobKey: string;
}

const hashPattern = /^[0-9a-f]{32}$/;

/** Validates a client's manifest: an object keyed by path. */
export function readManifest(
  manifest: Readonly<Record<string, { hash: string; size: number }>>,
): ManifestEntry[] {
  const paths = Object.keys(manifest);
  if (paths.length > assetLimits.files)
    throw assetErrors.manifest(
      `Expected at most ${assetLimits.files} files but received ${paths.length}`,
      "",
    );
  const sizes = new Map<string, number>();
  return paths.map((path) => {
    const { hash, size } = manifest[path]!;
    const pointer = `/${path.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (!path.startsWith("/") || path.length > assetLimits.pathLength || path.includes("\0"))
      throw assetErrors.manifest(
        `Expected a path that begins with a slash and has at most ${assetLimits.pathLength} characters`,
        pointer,
      );
    if (!hashPattern.test(hash))
      throw assetErrors.manifest(
        `Expected 32 lower-case hex characters for hash but received ${JSON.stringify(hash)}`,
        `${pointer}/hash`,
      );
    if (size > assetLimits.fileBytes)
      throw assetErrors.manifest(
        `Expected at most ${assetLimits.fileBytes} bytes for a file but received ${size}`,
        `${pointer}/size`,
      );
    if ((sizes.get(hash) ?? size) !== size)
      throw assetErrors.manifest(
        `Expected one size for the hash ${hash} but received two`,
        `${pointer}/size`,
      );
    sizes.set(hash, size);
    return { path, hash, sizeBytes: size };
  });
}

/** Groups files into requests of a bounded size. */
export function buckets(entries: Iterable<Pick<ManifestEntry, "hash" | "sizeBytes">>): string[][] {
  const groups: string[][] = [];
  let group: string[] = [];
  let bytes = 0;
  for (const { hash, sizeBytes } of entries) {
    if (
      group.length === assetLimits.bucketFiles ||
      (group.length > 0 && bytes + sizeBytes > assetLimits.bucketBytes)
    ) {
      groups.push(group);
      [group, bytes] = [[], 0];
    }
    group.push(hash);
    bytes += sizeBytes;
  }
  if (group.length > 0) groups.push(group);
  return groups;
}
