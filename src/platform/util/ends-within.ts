/** Whether a promise resolves within `ms`. Rejects if the promise rejects in time. */
export async function endsWithin(ms: number, ending: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(resolve, ms, false)));
  return Promise.race([ending.then(() => true), late]).finally(() => clearTimeout(timer));
}
