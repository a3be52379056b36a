import type { WorkerdConfig } from "./workerd-config.ts";
import { workerSource } from "./worker-sources.ts";

/** The storage of a cell of objects: the folder of all namespaces, and the ids of those that it may use. */
export interface ObjectStores {
  folder: string;
  namespaces: readonly string[];
  host: ObjectHost;
}

/** The class of the system worker that workerd runs for each object of a cell. */
export interface ObjectHost {
  /** The module of src/ that exports it, and the modules that this one imports. */
  module: string;
  className: string;
  parts: readonly string[];
}

/** Runs classes of scripts. */
export const scriptHost: ObjectHost = {
  module: "sandbox/worker/object-host.js",
  className: "Host",
  parts: [],
};

/** Inside a cell's folder: the folders of its namespaces. */
export const objectsFolder = "objects";

/** The host that a cell connects to for method calls of objects in the cell of a slot. */
export const rpcHost = (slot: number): string => `objects-${slot}`;

/** As the system worker connects to it: scripts can connect too, with workerd's own sockets, but know no secret. */
export const rpcHostWith = (secret: string, slot: number): string => `${rpcHost(slot)}.${secret}`;

/** The host without the secret; undefined if it is not there. */
export function rpcHostOf(secret: string, host: string): string | undefined {
  const end = `.${secret}`;
  return host.endsWith(end) ? host.slice(0, -end.length) : undefined;
}

/** The system worker's bindings, as in sandbox/worker/objects.ts. */
export const rpcBinding = (slot: number): string => `RPC${slot}`;
const namespaceBinding = (namespace: string): string => `O${namespace}`;

const mainModule = "objects-main.js";

/** Adds the namespaces of objects to the configuration of a cell. Each one is an exported name of the host class. */
export function addObjects(config: WorkerdConfig, { namespaces, host }: ObjectStores): void {
  const system = config.services.find((service) => service.name === "system");
  if (system === undefined || !("worker" in system)) throw new Error("Expected a system worker");
  const { worker } = system;
  const main = worker.modules[0]!.name;
  const names = namespaces.map(namespaceBinding);
  worker.modules.unshift({
    name: mainModule,
    esModule: `export { default } from ${JSON.stringify(main)};
export * from ${JSON.stringify(main)};
import { ${host.className} as Host } from ${JSON.stringify(host.module)};
export { ${names.map((name) => `Host as ${name}`).join(", ")} };
`,
  });
  for (const name of [host.module, ...host.parts])
    worker.modules.push({ name, esModule: workerSource(name) });
  worker.durableObjectNamespaces = namespaces.map((uniqueKey) => ({
    className: namespaceBinding(uniqueKey),
    uniqueKey,
    enableSql: true,
  }));
  worker.durableObjectStorage = { localDisk: objectsFolder };
  for (const name of names) worker.bindings.push({ name, durableObjectNamespace: { className: name } });
  config.services.push({ name: objectsFolder, disk: { path: objectsFolder, writable: true } });
  config.sockets.push({
    name: "rpc",
    address: "unix:rpc.sock",
    service: { name: "system", entrypoint: "RpcEntrypoint" },
    http: { capnpConnectHost: rpcTarget },
  });
}

/** The name under which a cell of objects takes calls; the gateway connects with it. */
export const rpcTarget = "objects";
