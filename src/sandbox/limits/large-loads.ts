import type { CellScript } from "../process/script.ts";

/** Size of code above which loading blocks a cell's thread noticeably: 4 MB take 100 ms. */
const largeBytes = 1024 * 1024;

/**
 * Loads at most one large script of each account at a time, because loading blocks everything else in a cell.
 * The next load starts when the request before it was answered, or after the maximum time of a load.
 */
export class LargeLoads {
  readonly #last = new Map<string, Promise<void>>();
  readonly #turnMsMax: number;

  constructor(turnMsMax: number) {
    this.#turnMsMax = turnMsMax;
  }

  async run<T>(script: CellScript, work: () => Promise<T>): Promise<T> {
    if (!isLarge(script)) return work();
    const { accountId } = script;
    const before = this.#last.get(accountId);
    const done = Promise.withResolvers<void>();
    const turn = this.#turn(before, done.promise);
    this.#last.set(accountId, turn);
    await before;
    try {
      return await work();
    } finally {
      done.resolve();
      if (this.#last.get(accountId) === turn) this.#last.delete(accountId);
    }
  }

  async #turn(before: Promise<void> | undefined, done: Promise<void>): Promise<void> {
    await before;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, this.#turnMsMax)));
    await Promise.race([done, late]);
    clearTimeout(timer);
  }
}

const isLarge = ({ modules }: CellScript): boolean => {
  let bytes = 0;
  for (const { content } of modules) bytes += content.length;
  return bytes >= largeBytes;
};
