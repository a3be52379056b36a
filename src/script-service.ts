import type { Logger } from "pino";
import type { Config } from "./platform/config/settings.ts";
import { DispatchNamespaces } from "./workers/dispatch/namespaces.ts";
import { tidyKv } from "./products/kv/tidy.ts";
import { KvNamespaces } from "./products/kv/kv.ts";
import type { BindingResources } from "./workers/scripts/versions/bindings.ts";
import { Deployments } from "./workers/scripts/versions/deployments.ts";
import { DomainRecords } from "./workers/scripts/routing/domain-records.ts";
import { Domains } from "./workers/scripts/routing/domains.ts";
import { References } from "./workers/scripts/references.ts";
import { ScriptRouter } from "./workers/scripts/routing/router.ts";
import { Routes } from "./workers/scripts/routing/routes.ts";
import { Scripts } from "./workers/scripts/scripts.ts";
import { Sealer } from "./workers/scripts/versions/sealing.ts";
import { Subdomains } from "./workers/scripts/routing/subdomains.ts";
import { Versions, type AssetManifests, type Start } from "./workers/scripts/versions/versions.ts";
import type { Services } from "./services.ts";
import type { Storage } from "./platform/storage/storage.ts";

/** The services that store, deploy and route scripts. */
export interface ScriptServices {
  scripts: Scripts;
  versions: Versions;
  deployments: Deployments;
  references: References;
  namespaces: DispatchNamespaces;
  routes: Routes;
  domains: Domains;
  domainRecords: DomainRecords;
  subdomains: Subdomains;
  scriptRouter: ScriptRouter;
  kv: KvNamespaces;
  /** Loads scripts, routes and domains from storage. Accounts and zones must be loaded before. */
  startScripts(logger: Logger): Promise<void>;
  stopScripts(): Promise<void>;
}

/** Creates the services. `hasQueue` returns true if an account has a queue of this name. */
export function createScriptServices(
  config: Config,
  storage: Storage,
  services: Pick<Services, "accounts" | "tokens" | "zones" | "records" | "blobs" | "assets">,
  hasQueue: BindingResources["queue"],
  startCode: Start,
): ScriptServices {
  const { accounts, zones, blobs, tokens } = services;
  const sealer = new Sealer(tokens.hash("script secrets"));
  const scripts = new Scripts(storage, sealer);
  const namespaces = new DispatchNamespaces(storage, scripts);
  const routes = new Routes(storage, scripts, zones);
  const domainRecords = new DomainRecords(services.records);
  const domains = new Domains(storage, scripts, zones, domainRecords);
  const subdomains = new Subdomains(storage, accounts);
  const kv = new KvNamespaces(storage, blobs);
  const resources: BindingResources = {
    kvNamespace: async (accountId, id) => (await kv.findNamespace(accountId, id)) !== undefined,
    dispatchNamespace: async (accountId, name) => namespaces.find(accountId, name) !== undefined,
    script: async (accountId, name) => scripts.find({ accountId }, name) !== undefined,
    queue: hasQueue,
  };
  const manifests: AssetManifests = {
    complete: async (owner, scriptName, token) => {
      const { accountId, namespace } = owner;
      const scriptId = scripts.find(owner, scriptName)?.id;
      return services.assets.completeUpload(
        { accountId, namespaceId: namespace?.id, scriptName, scriptId },
        token,
      );
    },
  };
  const versions = new Versions(
    storage,
    scripts,
    sealer,
    resources,
    manifests,
    startCode,
    config.scriptBytesMax,
  );
  let stop: (() => Promise<void>) | undefined;
  return {
    scripts,
    versions,
    deployments: new Deployments(storage, scripts),
    references: new References(storage, scripts),
    namespaces,
    routes,
    domains,
    domainRecords,
    subdomains,
    scriptRouter: new ScriptRouter(scripts, routes, domains, subdomains, config.workersDomain),
    kv,
    async startScripts(logger) {
      await scripts.start();
      await namespaces.start();
      await routes.start();
      await domains.start();
      await subdomains.start();
      stop = tidyKv(kv, logger);
    },
    stopScripts: async () => stop?.(),
  };
}
