import type { ProcessCalls } from "./process-calls/calls.ts";
import type { Config } from "./config/settings.ts";
import { blobUrlOf, filesOf, type BlobServices } from "./open-blobs.ts";
import type { Blob, Blobs } from "./storage/blobs.ts";
import { BlobCounts } from "./storage/blobs/blob-counts.ts";
import { pipeline } from "node:stream/promises";

const callName = "blob";
const sizeHeader = "x-blob-bytes";

interface BlobCall {
  key: string;
  range?: { start: number; end: number } | undefined;
}

/** In the main process: answers the reads of edge processes. */
export function serveBlobs(calls: ProcessCalls, blobs: Blobs): void {
  calls.serve<BlobCall>(callName, async ({ key, range }, { response }) => {
    const blob = await blobs.get(key, range);
    if (blob === undefined) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { [sizeHeader]: blob.sizeBytes });
    await pipeline(blob.stream, response);
  });
}

/**
 * The blobs of an edge process, read only. It reads files itself; other stores it reads through the main
 * process, which has the credentials and the cache.
 */
export function blobsOfEdgeProcess(config: Config, folder: string, calls: ProcessCalls): BlobServices {
  const { kind } = blobUrlOf(config);
  const blobCounts = new BlobCounts(kind);
  const blobsUnderTest = { beforeWrite: undefined };
  const blobs = kind === "files" ? filesOf(folder, blobCounts, blobsUnderTest) : readThroughMain(calls);
  return { blobs, blobCounts, blobsUnderTest, renewBlobs: async () => {}, closeBlobs: async () => {} };
}

function readThroughMain(calls: ProcessCalls): Blobs {
  const ofMain = (): never => {
    throw new Error("Only the main process writes blobs");
  };
  return {
    async get(key, range): Promise<Blob | undefined> {
      const answer = await calls.fetch(callName, { key, range } satisfies BlobCall);
      if (answer.statusCode === 200) return { sizeBytes: Number(answer.headers[sizeHeader]), stream: answer };
      answer.resume();
      return undefined;
    },
    put: ofMain,
    head: ofMain,
    delete: ofMain,
    file: ofMain,
    list: ofMain,
    folders: ofMain,
    deleteFolder: ofMain,
    removeUnnamed: ofMain,
    removeAbandoned: ofMain,
    check: ofMain,
  };
}
