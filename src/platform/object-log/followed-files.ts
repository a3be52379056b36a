import type { ObjectFile } from "../storage/live-files/object-files.ts";
import type { FollowedFile } from "./followed-file.ts";

/** The files whose logs are followed now. */
export class FollowedFiles {
  /** By object, then by file name. */
  readonly #byObject = new Map<string, Map<string, FollowedFile>>();
  readonly #byNamespace = new Map<string, Set<FollowedFile>>();
  /** Those that may not be restorable from the log yet. */
  readonly #late = new Set<FollowedFile>();

  get({ namespace, name }: ObjectFile): FollowedFile | undefined {
    return this.#byObject.get(objectOf(namespace, name))?.get(name);
  }

  ofObject(namespace: string, id: string): FollowedFile[] {
    return [...(this.#byObject.get(`${namespace}/${id}`)?.values() ?? [])];
  }

  all(): FollowedFile[] {
    return [...this.#byObject.values()].flatMap((files) => [...files.values()]);
  }

  /** The files of a namespace whose logs are open. */
  openOf(namespace: string): FollowedFile[] {
    return [...(this.#byNamespace.get(namespace) ?? [])].filter(({ isOpen }) => isOpen);
  }

  add(followed: FollowedFile): void {
    const { namespace, name } = followed.file;
    const all = this.#byNamespace.get(namespace);
    if (all === undefined) this.#byNamespace.set(namespace, new Set([followed]));
    else all.add(followed);
    const object = objectOf(namespace, name);
    const files = this.#byObject.get(object);
    if (files === undefined) this.#byObject.set(object, new Map([[name, followed]]));
    else files.set(name, followed);
    this.noteLate(followed);
  }

  delete(followed: FollowedFile): void {
    const { namespace, name } = followed.file;
    const object = objectOf(namespace, name);
    const files = this.#byObject.get(object);
    if (files?.get(name) !== followed) return;
    files.delete(name);
    if (files.size === 0) this.#byObject.delete(object);
    const all = this.#byNamespace.get(namespace);
    if (all?.delete(followed) === true && all.size === 0) this.#byNamespace.delete(namespace);
    this.#late.delete(followed);
  }

  /** Call it when a file may have lost its base, and after each read. */
  noteLate(followed: FollowedFile | undefined): void {
    if (followed !== undefined && isLate(followed)) this.#late.add(followed);
  }

  /** The files that cannot be restored from the log yet: of namespaces, or all. */
  late(namespaces?: ReadonlySet<string>): FollowedFile[] {
    for (const each of this.#late) if (!isLate(each)) this.#late.delete(each);
    return [...this.#late].filter(({ file }) => namespaces?.has(file.namespace) ?? true);
  }
}

/** Whether the log lacks something of the file. */
export const isLate = (followed: FollowedFile): boolean =>
  (!followed.hasBase || followed.isBehind) && !followed.isEmpty;

/** The key of the object that a file belongs to. */
const objectOf = (namespace: string, name: string): string =>
  `${namespace}/${name.slice(0, name.indexOf("."))}`;

/**
 * Resolves when the kernel's events for all earlier writes have arrived. They come with the next turn of the event loop: the
 * present one may have asked for events before the write.
 */
export async function eventsOfWrites(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
}
