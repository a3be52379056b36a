import { binding, declare, table } from "../../declaration.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { forms } from "../../platform/config/forms.ts";
import type {
  DispatchNamespacesTable,
  ScriptsTable,
  ScriptVersionsTable,
  ScriptModulesTable,
  ScriptDeploymentsTable,
  WorkerRoutesTable,
  WorkerDomainsTable,
  AccountSubdomainsTable,
} from "./tables.ts";
import type { textType, jsonType, versionMetadataType, serviceType } from "./binding-types.ts";

/** Scripts. */
export const declaration = declare({
  settings: {
    workersDomain: {
      kind: "text",
      form: forms.hostName,
      flag: "workers-domain",
      env: "SELVEDGE_WORKERS_DOMAIN",
      default: "workers.localhost",
      describe: "domain under which each script has its own host, SCRIPT.ACCOUNT.DOMAIN",
    },
    scriptBytesMax: {
      kind: "count",
      min: 1024,
      max: 1024 * mebibyte,
      flag: "script-bytes-max",
      env: "SELVEDGE_SCRIPT_BYTES_MAX",
      default: 64 * mebibyte,
      describe: "largest upload of a script, with all modules",
    },
  },
  tables: {
    dispatch_namespaces: table<DispatchNamespacesTable>(),
    scripts: table<ScriptsTable>(),
    script_versions: table<ScriptVersionsTable>(),
    script_modules: table<ScriptModulesTable>(),
    script_deployments: table<ScriptDeploymentsTable>(),
    worker_routes: table<WorkerRoutesTable>(),
    worker_domains: table<WorkerDomainsTable>(),
    account_subdomains: table<AccountSubdomainsTable>(),
  },
  changes: ["script", "dispatch_namespace", "worker_route", "worker_domain", "account_subdomain"],
  bindings: {
    plain_text: binding<typeof textType>(),
    secret_text: binding<typeof textType>(),
    json: binding<typeof jsonType>(),
    version_metadata: binding<typeof versionMetadataType>(),
    service: binding<typeof serviceType>(),
  },
});
