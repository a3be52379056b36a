/** A backup or restore was refused or failed. The message tells the operator what to do. */
export class BackupError extends Error {}

/** The error for a damaged part of a backup. */
export const damaged = (part: string, how = "does not match its digest"): BackupError =>
  new BackupError(`The backup is damaged: ${part} ${how}. Use another backup.`);
