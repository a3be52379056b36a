/* What workerd has and its published types leave out. */
declare module "node:async_hooks" {
  export class AsyncLocalStorage<T> {
    run<R>(store: T, callback: () => R): R;
    getStore(): T | undefined;
  }
}
declare namespace CloudflareWorkersModule {
  /** Ends the isolate that it is called in; the call under way fails. */
  export function abortIsolate(reason?: string): never;
}
