/** Instances by the time that something of theirs is due: a binary heap. What fires is only a hint to look. */
export class DueHeap {
  readonly #items: { due: number; rid: number }[] = [];

  get nextDue(): number | undefined {
    return this.#items[0]?.due;
  }

  push(due: number, rid: number): void {
    const items = this.#items;
    let at = items.push({ due, rid }) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (items[parent]!.due <= due) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = { due, rid };
  }

  /** Takes up to `max` instances that are due. */
  take(now: number, max: number): number[] {
    const rids: number[] = [];
    while (rids.length < max && this.#items.length > 0 && this.#items[0]!.due <= now) rids.push(this.#pop());
    return rids;
  }

  #pop(): number {
    const items = this.#items;
    const { rid } = items[0]!;
    const last = items.pop()!;
    if (items.length === 0) return rid;
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
    return rid;
  }
}
