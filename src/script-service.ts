import type { Logger } from "pino";
import type { Config } from "./config/settings.ts";
import { DispatchNamespaces } from "./dispatch/namespaces.ts";
import { tidyKv } from "./kv/tidy.ts";
import { KvNamespaces } from "./kv/kv.ts";
import type { BindingResources } from "./scripts/bindings.ts";
import { Deployments } from "./scripts/deployments.ts";
import { DomainRecords } from "./scripts/domain-records.ts";
import { Domains } from "./scripts/domains.ts";
import { References } from "./scripts/references.ts";
import { ScriptRouter } from "./scripts/router.ts";
import { Routes } from "./scripts/routes.ts";
import { Scripts } from "./scripts/scripts.ts";
import { Sealer } from "./scripts/sealing.ts";
import { Subdomains } from "./scripts/subdomains.ts";
import { Versions, type AssetManifests, type Start } from "./scripts/versions.ts";
import type { Services } from "./services.ts";
import type { Storage } from "./storage/storage.ts";

/** What belongs to hosting scripts. */
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
  /** Reads everything that requests are routed by. To be called when accounts and zones are known. */
  startScripts(logger: Logger): Promise<void>;
  stopScripts(): Promise<void>;
}

/** Puts the services of scripts together. `hasQueue` tells whether an account has a queue of a name. */
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
    complete: async ({ accountId, namespace }, scriptName, token) =>
      services.assets.completeUpload({ accountId, namespaceId: namespace?.id, scriptName }, token),
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
