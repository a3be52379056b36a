/** A backup or restore that was refused or failed. The message is for the operator, and says what to do. */
export class BackupError extends Error {}
