/** A backup or restore that was refused or failed. The message is for the operator, and says what to do. */
export class BackupError extends Error {}

/** The error about a part that is not as it was written. */
export const damaged = (part: string, how = "does not match its digest"): BackupError =>
  new BackupError(`The backup is damaged: ${part} ${how}. Use another backup.`);
