/** Waits for `work`. A rejection becomes the error "could not WHAT", with the original one as its cause. */
export async function during<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new Error(`could not ${what}`, { cause });
  }
}
