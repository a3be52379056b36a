import { createHash, randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { S3Call } from "./s3.ts";

export interface Reply {
  status: number;
  headers: Record<string, string>;
  body?: Buffer;
}
export interface S3Object {
  bytes: Buffer;
  etag: string;
  metadata: Record<string, string>;
  writtenOn: number;
}
interface Upload {
  key: string;
  metadata: Record<string, string>;
  parts: Map<number, { bytes: Buffer; etag: string }>;
  begunOn: number;
}

/** The objects and uploads of buckets. */
export class S3Buckets {
  readonly #buckets = new Map<string, Map<string, S3Object>>();
  readonly uploads = new Map<string, Upload>();
  /** Keys in one page of a list. */
  pageKeys = 1000;

  create(bucket: string): void {
    this.#buckets.set(bucket, new Map());
  }

  objects(bucket = "bucket"): Map<string, S3Object> {
    return this.#buckets.get(bucket)!;
  }

  answer(bucket: string, call: S3Call, headers: IncomingHttpHeaders, body: Buffer): Reply {
    const objects = this.#buckets.get(bucket);
    if (objects === undefined) return errorReply(404, "NoSuchBucket");
    const { method, key, query } = call;
    const uploadId = query.get("uploadId");
    if (key === "") return query.has("uploads") ? this.#listUploads(query) : this.#list(objects, query);
    if (method === "POST" && query.has("uploads")) return this.#begin(key, headers);
    if (uploadId !== null) return this.#upload(objects, call, uploadId, headers, body);
    if (method === "PUT") return put(objects, key, headers, body);
    if (method === "DELETE") return (objects.delete(key), { status: 204, headers: {} });
    return get(objects.get(key), headers);
  }

  #begin(key: string, headers: IncomingHttpHeaders): Reply {
    const uploadId = randomUUID();
    this.uploads.set(uploadId, { key, metadata: metadataOf(headers), parts: new Map(), begunOn: Date.now() });
    return xml(
      `<InitiateMultipartUploadResult><UploadId>${uploadId}</UploadId></InitiateMultipartUploadResult>`,
    );
  }

  #upload(
    objects: Map<string, S3Object>,
    { method, key, query }: S3Call,
    uploadId: string,
    headers: IncomingHttpHeaders,
    body: Buffer,
  ): Reply {
    const upload = this.uploads.get(uploadId);
    if (upload === undefined || upload.key !== key) return errorReply(404, "NoSuchUpload");
    if (method === "DELETE") return (this.uploads.delete(uploadId), { status: 204, headers: {} });
    if (method === "PUT") {
      const etag = etagOf(body);
      upload.parts.set(Number(query.get("partNumber")), { bytes: body, etag });
      return { status: 200, headers: { etag } };
    }
    const named = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>([^<]+)<\/ETag>/g)];
    const parts = named.map(([, number, etag]) => {
      const part = upload.parts.get(Number(number));
      return part?.etag === etag!.replaceAll("&quot;", '"') ? part.bytes : undefined;
    });
    if (parts.length === 0 || parts.includes(undefined)) return errorReply(400, "InvalidPart");
    if (parts.slice(0, -1).some((part) => part!.length < 5 * 1024 * 1024))
      return errorReply(400, "EntityTooSmall");
    if (isRefused(objects.get(key), headers)) return errorReply(412, "PreconditionFailed");
    const bytes = Buffer.concat(parts as Buffer[]);
    const etag = `"${etagOf(bytes).slice(1, -1)}-${parts.length}"`;
    objects.set(key, { bytes, etag, metadata: upload.metadata, writtenOn: Date.now() });
    this.uploads.delete(uploadId);
    return xml(`<CompleteMultipartUploadResult><ETag>${etag}</ETag></CompleteMultipartUploadResult>`);
  }

  #list(objects: Map<string, S3Object>, query: URLSearchParams): Reply {
    const prefix = query.get("prefix") ?? "";
    const delimiter = query.get("delimiter");
    const after = Buffer.from(query.get("continuation-token") ?? "", "base64").toString();
    const items = new Map<string, string>();
    for (const key of [...objects.keys()].toSorted()) {
      if (!key.startsWith(prefix)) continue;
      const end = delimiter === null ? -1 : key.indexOf(delimiter, prefix.length);
      const { bytes, writtenOn } = objects.get(key)!;
      if (end >= 0)
        items.set(
          key.slice(0, end + 1),
          `<CommonPrefixes><Prefix>${key.slice(0, end + 1)}</Prefix></CommonPrefixes>`,
        );
      else
        items.set(
          key,
          `<Contents><Key>${key}</Key><LastModified>${new Date(writtenOn).toISOString()}</LastModified><Size>${bytes.length}</Size></Contents>`,
        );
    }
    const left = [...items].filter(([key]) => key > after);
    const page = left.slice(0, Math.min(this.pageKeys, Number(query.get("max-keys") ?? 1000)));
    const isLast = page.length === left.length;
    const next = isLast
      ? ""
      : `<NextContinuationToken>${Buffer.from(page.at(-1)![0]).toString("base64")}</NextContinuationToken>`;
    return xml(`<ListBucketResult>${page.map(([, text]) => text).join("")}${next}</ListBucketResult>`);
  }

  #listUploads(query: URLSearchParams): Reply {
    const uploads = [...this.uploads].filter(([, { key }]) => key.startsWith(query.get("prefix") ?? ""));
    const text = uploads.map(
      ([id, { key, begunOn }]) =>
        `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${new Date(begunOn).toISOString()}</Initiated></Upload>`,
    );
    return xml(`<ListMultipartUploadsResult>${text.join("")}</ListMultipartUploadsResult>`);
  }
}

function put(
  objects: Map<string, S3Object>,
  key: string,
  headers: IncomingHttpHeaders,
  bytes: Buffer,
): Reply {
  if (isRefused(objects.get(key), headers)) return errorReply(412, "PreconditionFailed");
  const etag = etagOf(bytes);
  objects.set(key, { bytes, etag, metadata: metadataOf(headers), writtenOn: Date.now() });
  return { status: 200, headers: { etag } };
}

function get(object: S3Object | undefined, headers: IncomingHttpHeaders): Reply {
  if (object === undefined) return errorReply(404, "NoSuchKey");
  if (isRefused(object, headers)) return errorReply(412, "PreconditionFailed");
  const { bytes, etag, metadata, writtenOn } = object;
  const facts = { etag, ...metadata, "last-modified": new Date(writtenOn).toUTCString() };
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? "") ?? [];
  if (first === undefined)
    return { status: 200, headers: { ...facts, "content-length": String(bytes.length) }, body: bytes };
  const end = last === "" ? bytes.length - 1 : Math.min(Number(last), bytes.length - 1);
  if (Number(first) > end) return errorReply(416, "InvalidRange");
  const range = `bytes ${first}-${end}/${bytes.length}`;
  return {
    status: 206,
    headers: { ...facts, "content-range": range },
    body: bytes.subarray(Number(first), end + 1),
  };
}

function isRefused(object: S3Object | undefined, headers: IncomingHttpHeaders): boolean {
  const { "if-match": match, "if-none-match": noneMatch } = headers;
  if (match !== undefined && match !== object?.etag) return true;
  return noneMatch !== undefined && object !== undefined && (noneMatch === "*" || noneMatch === object.etag);
}

export const errorReply = (status: number, code: string): Reply => ({
  status,
  headers: { "content-type": "application/xml" },
  body: Buffer.from(
    `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>secret detail</Message><RequestId>${randomUUID()}</RequestId></Error>`,
  ),
});

const etagOf = (bytes: Buffer): string => `"${createHash("md5").update(bytes).digest("hex")}"`;
const metadataOf = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      name.startsWith("x-amz-meta-") ? [[name, String(value)]] : [],
    ),
  );
const xml = (text: string): Reply => ({
  status: 200,
  headers: { "content-type": "application/xml" },
  body: Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${text}`),
});
