import { gunzipSync } from "node:zlib";
import { s3Credentials, type S3Double } from "./s3.ts";

/** A bucket of the double as the destination of a job. */
export const bucketDestination = ({ endpoint }: S3Double, path = "logs/{DATE}"): string =>
  `s3://bucket/${path}?region=us-west-2&access-key-id=${s3Credentials.accessKeyId}` +
  `&secret-access-key=${encodeURIComponent(s3Credentials.secretAccessKey)}&endpoint=${encodeURIComponent(endpoint)}`;

/** The names of uploaded files, without those that try a bucket out. */
export const filesIn = ({ buckets }: S3Double): string[] =>
  [...buckets.objects().keys()].filter((key) => key.endsWith(".log.gz"));

/** All records in the bucket. */
export const recordsIn = (double: S3Double): Record<string, unknown>[] =>
  filesIn(double).flatMap((key) =>
    gunzipSync(double.buckets.objects().get(key)!.bytes)
      .toString()
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>),
  );
