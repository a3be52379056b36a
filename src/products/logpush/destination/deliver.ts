import { Readable } from "node:stream";
import { encodePath, RequestSigner, sha256 } from "../../../platform/storage/blobs/signature.ts";
import type { LogDestination, HttpsDestination, S3Destination } from "./destination.ts";
import { UploadFault, type DestinationResponse, type Outgoing, type LogSender } from "./send.ts";

/** A file for a destination. */
export interface LogFile {
  /** Its name, without a folder. */
  name: string;
  /** The day of the file's first event, for {DATE}. */
  day: string;
  type: "gzip" | "text";
  sizeBytes: number;
  sha256: string;
  open: () => Readable;
}

/** YYYYMMDD. */
export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10).replaceAll("-", "");

/** The key of a file in its bucket. */
export function bucketKeyOf({ path }: S3Destination, { name, day }: Pick<LogFile, "name" | "day">): string {
  const folder = path.replaceAll("{DATE}", day);
  return folder === "" ? name : `${folder}/${name}`;
}

/** Uploads a file. Rejects with UploadFault. */
export async function deliver(
  sender: LogSender,
  destination: LogDestination,
  delivery: LogFile,
  signal?: AbortSignal,
): Promise<void> {
  const outgoing =
    destination.kind === "s3" ? s3Put(destination, delivery) : httpsPost(destination, delivery);
  const answer = await sender.send(outgoing, signal);
  if (answer.status >= 200 && answer.status < 300 && !isS3Error(destination, answer)) return;
  throw new UploadFault(
    answer.status >= 300 && answer.status < 400
      ? `it answered with a redirect (${answer.status}), which uploads do not follow`
      : `it answered with status ${answer.status}${codeOf(destination, answer)}`,
  );
}

function httpsPost({ url, headers }: HttpsDestination, { type, sizeBytes, open }: LogFile): Outgoing {
  const encoding: Record<string, string> = type === "gzip" ? { "content-encoding": "gzip" } : {};
  return {
    method: "POST",
    url,
    headers: { "content-type": "application/x-ndjson", ...headers, ...encoding },
    body: { sizeBytes, open },
  };
}

function s3Put(destination: S3Destination, delivery: LogFile): Outgoing {
  const { endpoint, bucket, isInPath, region, accessKeyId, secretAccessKey, encryption } = destination;
  const key = bucketKeyOf(destination, delivery);
  const path = encodePath(isInPath ? `/${bucket}/${key}` : `/${key}`);
  const host = isInPath ? endpoint.host : `${bucket}.${endpoint.host}`;
  const headers = new RequestSigner({ accessKeyId, secretAccessKey }, region).sign(
    {
      method: "PUT",
      path,
      query: {},
      payloadSha256: delivery.sha256,
      headers: {
        host,
        "content-type": delivery.type === "gzip" ? "application/gzip" : "text/plain",
        ...(encryption === undefined ? {} : { "x-amz-server-side-encryption": encryption }),
      },
    },
    new Date(),
  );
  const url = new URL(`${endpoint.protocol}//${host}${path}`);
  const { sizeBytes, open } = delivery;
  return { method: "PUT", url, headers, body: { sizeBytes, open } };
}

/** Whether a response is an error document of S3, which may have status 200. */
const isS3Error = ({ kind }: LogDestination, { text }: DestinationResponse): boolean =>
  kind === "s3" && /<Error>/.test(text);

/** The error code of an S3 response, such as AccessDenied. Other texts of destinations are not passed on. */
function codeOf({ kind }: LogDestination, { text }: DestinationResponse): string {
  const code = kind === "s3" ? /<Code>([A-Za-z]{1,64})<\/Code>/.exec(text)?.[1] : undefined;
  return code === undefined ? "" : ` (${code})`;
}

/** A small file, from bytes in memory. */
export function smallFile(name: string, type: LogFile["type"], bytes: Buffer, nowMs: number): LogFile {
  return {
    name,
    type,
    day: dayOf(nowMs),
    sizeBytes: bytes.length,
    sha256: sha256(bytes),
    open: () => Readable.from([bytes]),
  };
}
