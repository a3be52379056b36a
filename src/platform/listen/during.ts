/** Says what was tried when a promise rejects: "could not WHAT", with the cause. */
export async function during<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new Error(`could not ${what}`, { cause });
  }
}
