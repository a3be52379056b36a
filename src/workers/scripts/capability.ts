import { capability } from "../../capability.ts";
import { accounts } from "../../control/accounts/capability.ts";
import { tokens } from "../../control/tokens/capability.ts";
import { zones } from "../../control/zones/capability.ts";
import { records } from "../../dns/records/capability.ts";
import { edgeServer } from "../../edge/capability.ts";
import { storage } from "../../platform/capability.ts";
import { isMain } from "../../platform/processes/own-process.ts";
import { assets } from "../assets/capability.ts";
import { DispatchNamespaces } from "./namespaces/namespaces.ts";
import { bindings, startup } from "../capability.ts";
import { References } from "./references.ts";
import { DomainRecords } from "./routing/domain-records.ts";
import { Domains } from "./routing/domains.ts";
import { ScriptRouter } from "./routing/router.ts";
import { Routes } from "./routing/routes.ts";
import { Subdomains } from "./routing/subdomains.ts";
import { Scripts } from "./scripts.ts";
import { Deployments } from "./versions/deployments.ts";
import { Sealer } from "./versions/sealing.ts";
import type { AssetManifests } from "./versions/version-input.ts";
import { Versions } from "./versions/versions.ts";
import { declaration } from "./declaration.ts";
import { textType, jsonType, versionMetadataType, serviceType } from "./binding-types.ts";
import { scriptErrors } from "./errors.ts";
import { scriptErrorCodes } from "./api-errors.ts";
import { routeErrors, scriptDomainErrors, subdomainErrors } from "./routing/errors.ts";
import { routeErrorCodes, scriptDomainErrorCodes, subdomainErrorCodes } from "./routing/api-errors.ts";

/** Stores, deploys and routes scripts, of accounts and of the namespaces that they dispatch to. */
export const scripts = capability({
  name: "scripts",
  processes: "all",
  declares: declaration,
  needs: [storage, accounts, tokens, zones, records, edgeServer, assets, bindings, startup],
  create({ config, own, storage: database, ...needed }) {
    const sealer = new Sealer(needed.tokens.hash("script secrets"));
    const stored = new Scripts(database, sealer);
    const routes = new Routes(database, stored, needed.zones);
    const domainRecords = new DomainRecords(needed.records);
    const domains = new Domains(database, stored, needed.zones, domainRecords);
    const subdomains = new Subdomains(database, needed.accounts, isMain(own));
    const manifests: AssetManifests = {
      complete: async (owner, scriptName, token) => {
        const { accountId, namespace } = owner;
        const scriptId = stored.find(owner, scriptName)?.id;
        const upload = { accountId, namespaceId: namespace?.id, scriptName, scriptId };
        return needed.assets.completeUpload(upload, token);
      },
    };
    const versions = new Versions(
      database,
      stored,
      sealer,
      needed.bindings,
      manifests,
      async (script) => needed.startup.start(script),
      config.scriptBytesMax,
    );
    const scriptRouter = new ScriptRouter(stored, routes, domains, subdomains, config.workersDomain);
    needed.edgeListener.onListening(({ port }) => scriptRouter.listening(port));
    return {
      scripts: stored,
      versions,
      deployments: new Deployments(database, stored),
      references: new References(database, stored),
      namespaces: new DispatchNamespaces(database, stored),
      routes,
      domains,
      domainRecords,
      subdomains,
      scriptRouter,
    };
  },
  operations: async () => (await import("./api.ts")).scriptOperations,
  errors: [
    { title: "Scripts", errors: scriptErrors, codes: scriptErrorCodes },
    { title: "Routes to scripts", errors: routeErrors, codes: routeErrorCodes },
    { title: "Domains of scripts", errors: scriptDomainErrors, codes: scriptDomainErrorCodes },
    { title: "Subdomains of accounts", errors: subdomainErrors, codes: subdomainErrorCodes },
  ],
  idParameters: ["route_id", "domain_id"],
  bindings: ({ scripts: stored }) => ({
    plain_text: { type: textType, value: ({ text }) => text },
    secret_text: { type: textType, value: ({ text }) => text },
    json: { type: jsonType, value: ({ json }) => json },
    version_metadata: { type: versionMetadataType, value: (_, { version }) => version },
    service: {
      type: serviceType,
      isolate: {
        module: "workers/runtime/worker/service.js",
        factory: "service",
        className: "Fetcher",
        systemEntrypoint: "Service",
      },
      exists: async (accountId, name) => stored.find({ accountId }, name) !== undefined,
    },
  }),
  async load(services) {
    await services.scripts.start();
    await services.namespaces.start();
    await services.routes.start();
    await services.domains.start();
    await services.subdomains.start();
  },
});
