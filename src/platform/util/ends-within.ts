/** Whether a promise resolves within `ms` milliseconds. Rejects if the promise rejects in time. */
export async function endsWithin(ms: number, ending: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(resolve, ms, false)));
  return Promise.race([ending.then(() => true), late]).finally(() => clearTimeout(timer));
}

/** Resolves or rejects like `promise`, but rejects if it takes longer than `ms`. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
