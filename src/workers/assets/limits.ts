export const assetLimits = {
  files: 100_000,
  fileBytes: 25 * 1024 * 1024,
  pathLength: 1024,
  /** Limits of one bucket, the files of one request. */
  bucketFiles: 500,
  bucketBytes: 32 * 1024 * 1024,
  sessionSeconds: 60 * 60,
  /** Maximum time between a completed upload and the upload of its script. */
  completionSeconds: 60 * 60,
};
