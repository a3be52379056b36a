/** A place of files that are written once: a folder, or the objects of a bucket below a prefix. */
export interface Archive {
  /** The path or URL, for messages. */
  readonly shown: string;
  /** Writes a new file. It is durable when the promise resolves; after a failure there is none. */
  write(path: string, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Undefined if there is no such file. Reading `stream` can fail. */
  read(path: string): Promise<ArchivedFile | undefined>;
  /** Succeeds if there is no such file, too. */
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
  /** Time since it was written, by the clock of the place. */
  ageMs: number;
}

/** A file of an archive, with what it held when it was written. */
export interface Part {
  path: string;
  bytes: number;
  sha256: string;
}

/** An archive that is being made. It does not count as complete before `complete` resolves. */
export interface NewArchive {
  files: Archive;
  /** Writes the manifest, which makes the archive complete. Rejects if another one has the name by then. */
  complete(manifest: string): Promise<void>;
  /** Removes what was written. */
  discard(): Promise<void>;
}

/** The location of backups: a folder of folders, or a prefix of a bucket. */
export interface ArchivePlace {
  readonly shown: string;
  /** Begins an archive. Throws BackupError if there is one of that name, or none can be made. */
  begin(name: string): Promise<NewArchive>;
  /** The files of a complete archive with the text of its manifest. Throws BackupError if there is none. */
  open(name: string): Promise<{ files: Archive; manifest: string }>;
  /** The names of all archives that are complete. */
  names(): Promise<string[]>;
  remove(name: string): Promise<void>;
  /** Removes what attempts to make this backup left, none of which runs any more. */
  removeAttempts(name: string): Promise<void>;
  /** Any other files at the place, such as the shipped log. */
  readonly files: Archive;
  close(): Promise<void>;
}
