/*
 * The caches of scripts hold nothing, as publicly on workers.dev: match() finds nothing, put() checks and reads what it
 * is given, delete() has nothing to delete. Programs such as SvelteKit's adapter ask a cache before every answer.
 */
let isSaid = false;

/** Throws a TypeError for what is no request and no address. */
const check = (request: RequestInfo): Request => new Request(request);

const methods = {
  async match(request: RequestInfo): Promise<undefined> {
    check(request);
  },
  async put(request: RequestInfo, response: Response): Promise<void> {
    if (check(request).method !== "GET")
      throw new TypeError("Cannot cache the response to a request that is not GET.");
    if (response.status === 206)
      throw new TypeError("Cannot cache a part of a response (206 Partial Content).");
    if (response.headers.get("vary")?.includes("*") === true)
      throw new TypeError('Cannot cache a response with "Vary: *".');
    if (response.bodyUsed) throw new TypeError("Cannot cache a response whose body has been read.");
    if (!isSaid) console.warn("The caches of scripts hold nothing here: put() keeps no response.");
    isSaid = true;
    await response.body?.pipeTo(new WritableStream());
  },
  async delete(request: RequestInfo): Promise<boolean> {
    check(request);
    return false;
  },
};

for (const [name, value] of Object.entries(methods))
  Object.defineProperty(Cache.prototype, name, {
    value,
    writable: true,
    configurable: true,
    enumerable: true,
  });
