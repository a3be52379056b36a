import { Pool, type Dispatcher } from "undici";

export interface Request {
  method: Dispatcher.HttpMethod;
  path: string;
  headers: Record<string, string>;
  body?: string;
}

/** Connections that stay open for several loads, so that their beginning is not measured. */
export class Connections {
  readonly #pool: Pool;
  readonly #count: number;

  constructor(origin: string, count: number) {
    this.#pool = new Pool(origin, { connections: count, pipelining: 1 });
    this.#count = count;
  }

  /** Sends `count` requests, one at a time on each connection. Resolves with the seconds it took. */
  async load(count: number, make: (index: number) => Request, expectedStatus = 200): Promise<number> {
    let next = 0;
    const start = performance.now();
    await Promise.all(
      Array.from({ length: this.#count }, async () => {
        while (next < count) {
          const { statusCode, body } = await this.#pool.request(make(next++));
          if (statusCode !== expectedStatus) throw new Error(`status ${statusCode}: ${await body.text()}`);
          await body.dump({ limit: Number.MAX_SAFE_INTEGER });
        }
      }),
    );
    return (performance.now() - start) / 1000;
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }
}

/** Sends `count` requests over new connections, one at a time on each. Resolves with the seconds it took. */
export async function load(
  origin: string,
  count: number,
  connections: number,
  make: (index: number) => Request,
  expectedStatus = 200,
): Promise<number> {
  const open = new Connections(origin, connections);
  const seconds = await open.load(count, make, expectedStatus);
  await open.close();
  return seconds;
}
