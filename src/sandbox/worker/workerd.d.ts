/* Parts of workerd that its published types lack. */
declare module "node:async_hooks" {
  export class AsyncLocalStorage<T> {
    run<R>(store: T, callback: () => R): R;
    getStore(): T | undefined;
  }
}
declare namespace CloudflareWorkersModule {
  /** Ends the isolate that calls it; the current call fails. */
  export function abortIsolate(reason?: string): never;
}
