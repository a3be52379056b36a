import { RpcTarget } from "cloudflare:workers";
import { forRun } from "../../../sandbox/worker/run.ts";
import { remoteProperty } from "./binding-object.ts";

/*
 * A stub as a value of RPC. workerd's own stubs of objects and scripts are valid in one process only, and the stubs of
 * scripts here are not workerd's. So another script receives a target whose methods call the stub, for the run that
 * sent it.
 */
type Stub = Record<string, (...args: unknown[]) => unknown>;

// Saved before the script's code runs, because a script may replace them.
const { get: getProperty } = Reflect;
const { setPrototypeOf } = Object;
const NativeProxy = Proxy;

class Forwarder extends RpcTarget {}

/** Makes a target whose methods and properties are those of a stub, called for a run. */
export function forwarderOf(stub: object, run: string): RpcTarget {
  const property = (path: readonly string[]): unknown =>
    remoteProperty(
      (key) => property([...path, key]),
      (args) => forRun(run, () => memberOf(stub, path)(...args)),
      async () => forRun(run, async () => memberOf(stub, path)),
    );
  // workerd looks for methods on prototypes only.
  const prototype = new NativeProxy(RpcTarget.prototype as object, {
    get: (of, name, receiver): unknown =>
      isRemote(name) && !(name in of) ? property([name]) : getProperty(of, name, receiver),
    has: (of, name) => isRemote(name) || name in of,
  });
  return setPrototypeOf(new Forwarder(), prototype) as RpcTarget;
}

function memberOf(stub: object, path: readonly string[]): (...args: unknown[]) => unknown {
  let at = stub as Stub;
  for (let i = 0; i < path.length - 1; i++) at = at[path[i]!] as unknown as Stub;
  const owner = at;
  const member = owner[path.at(-1)!]!;
  return typeof member === "function" ? member : () => member;
}

/** workerd looks for "dup" to copy a target, and promises look for "then". */
const isRemote = (name: PropertyKey): name is string =>
  typeof name === "string" && name !== "then" && name !== "dup";
