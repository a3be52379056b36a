/** Maximum number of values of a label. Each value adds series to Prometheus, which keeps them for weeks. */
const valuesMax = 1000;

/** The values of a label. The first thousand have series of their own; all further ones share `other`. */
export class BoundedLabel {
  readonly #known = new Set<string>();
  readonly #max: number;

  constructor(max = valuesMax) {
    this.#max = max;
  }

  of(value: string): string {
    if (this.#known.has(value)) return value;
    if (this.#known.size >= this.#max) return "other";
    this.#known.add(value);
    return value;
  }
}
