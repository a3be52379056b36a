/** The numbers of the last entries of namespaces that are being shipped. */
export class LastEntries {
  readonly #numbers = new Map<string, number>();

  note(namespace: string, entry: number): void {
    this.#numbers.set(namespace, entry);
  }

  /** The last entry of any of these namespaces; 0 for none. */
  of(namespaces: ReadonlySet<string>): number {
    let last = 0;
    for (const [namespace, entry] of this.#numbers)
      if (entry > last && namespaces.has(namespace)) last = entry;
    return last;
  }

  clear(): void {
    this.#numbers.clear();
  }
}
