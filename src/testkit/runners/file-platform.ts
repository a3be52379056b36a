import { startSelvedge, type Selvedge, type StartOptions } from "../start-selvedge.ts";

type Hook = (run: () => Promise<void>) => void;

/** A test runner's hooks for a file or a `describe`. */
export interface RunnerHooks {
  before: Hook;
  beforeEach: Hook;
  afterEach: Hook;
  after: Hook;
}

/** Starts one platform for the tests between the hooks, and resets it before each. */
export function filePlatform(hooks: RunnerHooks, options: StartOptions): () => Selvedge {
  let edge: Selvedge | undefined;
  hooks.before(async () => {
    edge = await startSelvedge(options);
  });
  hooks.beforeEach(async () => edge!.reset());
  hooks.afterEach(async () => edge!.check());
  hooks.after(async () => edge?.close());
  return () => {
    if (edge === undefined) throw new Error("The platform is available only inside a test");
    return edge;
  };
}
