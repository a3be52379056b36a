/** An error response of an S3 server. Without the server's text, which can name keys and secrets. */
export class S3Fault extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string) {
    super(`The S3 server answered ${status} ${code}`.trimEnd());
    this.status = status;
    this.code = code;
  }

  /** Whether the same call can succeed later. */
  get isTemporary(): boolean {
    const { status, code } = this;
    if (temporaryCodes.has(code)) return true;
    // A response to HEAD has no body, so its conflicts have no error code.
    if (status === 409 && code === "") return true;
    return status === 408 || status === 429 || status >= 500;
  }
}

const temporaryCodes: ReadonlySet<string> = new Set([
  "ConditionalRequestConflict",
  "InternalError",
  "OperationAborted",
  "RequestTimeTooSkewed",
  "RequestTimeout",
  "ServiceUnavailable",
  "SlowDown",
  // The request's body was damaged in transit.
  "BadDigest",
  "IncompleteBody",
  "XAmzContentSHA256Mismatch",
]);

/** The error in a response; undefined for a success. A server may send an error document with status 200. */
export function s3FaultOf(status: number, text: string): S3Fault | undefined {
  const isError = /^\s*(<\?xml[^>]*>\s*)?<Error[\s>]/.test(text);
  if (status < 300 && !isError) return undefined;
  return new S3Fault(status, isError ? (valueOf(text, "Code") ?? "") : "");
}

export interface ListPage {
  entries: { key: string; sizeBytes: number; writtenOn: number }[];
  prefixes: string[];
  /** Undefined on the last page. */
  next: string | undefined;
}

/** A response of ListObjectsV2. */
export function readList(text: string): ListPage {
  const entries = elementsOf(text, "Contents").map((element) => ({
    key: required(element, "Key"),
    sizeBytes: Number(required(element, "Size")),
    writtenOn: Date.parse(required(element, "LastModified")),
  }));
  const prefixes = elementsOf(text, "CommonPrefixes").map((element) => required(element, "Prefix"));
  return { entries, prefixes, next: valueOf(text, "NextContinuationToken") };
}

/** A response of ListMultipartUploads. */
export const readUploads = (text: string): { key: string; uploadId: string; begunOn: number }[] =>
  elementsOf(text, "Upload").map((element) => ({
    key: required(element, "Key"),
    uploadId: required(element, "UploadId"),
    begunOn: Date.parse(required(element, "Initiated")),
  }));

export const readUploadId = (text: string): string => required(text, "UploadId");

export const completion = (etags: readonly string[]): string => {
  const parts = etags.map(
    (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`,
  );
  return `<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`;
};

function elementsOf(text: string, name: string): string[] {
  return [...text.matchAll(new RegExp(`<${name}>([^]*?)</${name}>`, "g"))].map(([, inner]) => inner!);
}

function valueOf(text: string, name: string): string | undefined {
  const value = new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1];
  return value === undefined ? undefined : unescaped(value);
}

function required(text: string, name: string): string {
  const value = valueOf(text, name);
  if (value === undefined) throw new Error(`Expected <${name}> in a response of the S3 server`);
  return value;
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
const unescaped = (text: string): string =>
  text.replace(
    /&(?:(amp|lt|gt|quot|apos)|#(\d+)|#x([\da-f]+));/gi,
    (_, name?: string, decimal?: string, hex?: string) =>
      name === undefined
        ? String.fromCodePoint(decimal === undefined ? parseInt(hex!, 16) : Number(decimal))
        : entities[name.toLowerCase()]!,
  );
const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
