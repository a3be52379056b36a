/** A binary heap of items by due time. */
export class DueHeap<T> {
  readonly #items: { due: number; item: T }[] = [];

  get next(): { due: number; item: T } | undefined {
    return this.#items[0];
  }

  get size(): number {
    return this.#items.length;
  }

  push(due: number, item: T): void {
    const items = this.#items;
    let at = items.push({ due, item }) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (items[parent]!.due <= due) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = { due, item };
  }

  /** Takes up to `max` due items, the earliest first. */
  take(now: number, max: number): T[] {
    const taken: T[] = [];
    while (taken.length < max && this.#items.length > 0 && this.#items[0]!.due <= now)
      taken.push(this.#pop());
    return taken;
  }

  #pop(): T {
    const items = this.#items;
    const { item } = items[0]!;
    const last = items.pop()!;
    if (items.length === 0) return item;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && items[child + 1]!.due < items[child]!.due) child++;
      if (items[child]!.due >= last.due) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = last;
    return item;
  }
}
