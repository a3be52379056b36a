/** A store of files that are written once: a folder, or the objects of a bucket below a prefix. */
export interface Archive {
  /** The path or URL, for messages. */
  readonly shown: string;
  /** Writes a new file. It is durable when the promise resolves; after a failure there is no file. */
  write(path: string, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Undefined if there is no such file. Reading `stream` can fail. */
  read(path: string): Promise<ArchivedFile | undefined>;
  /** Removes a file. Succeeds also if there is none. */
  remove(path: string): Promise<void>;
  /** All files whose path begins with the prefix, which is "" or ends in a slash. */
  list(prefix: string): AsyncIterable<ListedFile>;
  /** The names of folders directly below a prefix, which is "" or ends in a slash. */
  folders(prefix: string): Promise<string[]>;
}

export interface ArchivedFile {
  sizeBytes: number;
  stream: AsyncIterable<Uint8Array>;
}

export interface ListedFile {
  path: string;
  sizeBytes: number;
  /** Time since the file was written, by the store's clock. */
  ageMs: number;
}

/** A file of an archive, with the size and digest of its content. */
export interface Part {
  path: string;
  bytes: number;
  sha256: string;
}

/** An archive that is being written. It is complete once `complete` resolves. */
export interface NewArchive {
  files: Archive;
  /** Writes the manifest, which makes the archive complete. Rejects if another archive has the name meanwhile. */
  complete(manifest: string): Promise<void>;
  /** Removes the files that were written. */
  discard(): Promise<void>;
}

/** The location of backups: a folder of folders, or a prefix of a bucket. */
export interface ArchiveStore {
  readonly shown: string;
  /** Begins an archive. Throws BackupError if one with this name exists or the store cannot be written. */
  begin(name: string): Promise<NewArchive>;
  /** The files of a complete archive with the text of its manifest. Throws BackupError if there is none. */
  open(name: string): Promise<{ files: Archive; manifest: string }>;
  /** The names of all archives that are complete. */
  names(): Promise<string[]>;
  remove(name: string): Promise<void>;
  /** Removes the files of unfinished attempts to make this backup. Call it only when none is running. */
  removeAttempts(name: string): Promise<void>;
  /** Other files in the store, such as the shipped log. */
  readonly files: Archive;
  close(): Promise<void>;
}
