import { Pool, type Dispatcher } from "undici";

export interface Request {
  method: Dispatcher.HttpMethod;
  path: string;
  headers: Record<string, string>;
  body?: string;
}

/** Sends `count` requests over `connections`, one at a time on each connection. Resolves with the seconds it took. */
export async function load(
  origin: string,
  count: number,
  connections: number,
  make: (index: number) => Request,
  expectedStatus = 200,
): Promise<number> {
  const pool = new Pool(origin, { connections, pipelining: 1 });
  let next = 0;
  const start = performance.now();
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (next < count) {
        const { statusCode, body } = await pool.request(make(next++));
        if (statusCode !== expectedStatus) throw new Error(`status ${statusCode}: ${await body.text()}`);
        await body.dump({ limit: Number.MAX_SAFE_INTEGER });
      }
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  await pool.close();
  return seconds;
}
