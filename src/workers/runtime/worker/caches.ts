/*
 * The caches of scripts store nothing, as in the public service on workers.dev: match() finds nothing, put() only checks
 * and reads its arguments, and delete() returns false. Programs such as SvelteKit's adapter look into a cache before
 * every answer.
 */
let hasWarned = false;

/** Throws a TypeError if the value is neither a request nor a URL. */
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
    if (!hasWarned) console.warn("Caches of scripts are not supported here: put() stores no response.");
    hasWarned = true;
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
