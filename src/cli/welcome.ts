import type { Config } from "../platform/config/settings.ts";
import type { RunningServer } from "../server.ts";

/** The text that `serve` prints when it is ready. It contains the token only at the start that created it. */
export function welcome({ ready, newToken, startLink }: RunningServer, config: Config): string {
  const lines = [
    "Selvedge is ready.",
    "",
    `  management API   ${ready.api}`,
    `  edge             ${[ready.edge, ready.edge_tls].filter((url) => url !== null).join(" and ")}`,
    `  name server      ${ready.dns}`,
    ...(ready.metrics === null ? [] : [`  metrics          ${ready.metrics}`]),
    ...(config.dashboard === "on" ? [`  console          ${ready.dashboard}`] : []),
    `  account          ${ready.account_id}`,
  ];
  if (newToken === undefined) {
    const source = config.apiToken === undefined ? "as printed at the first start" : "from the configuration";
    return `${[...lines, `  API token        ${source}`].join("\n")}\n`;
  }
  return `${[
    ...lines,
    `  API token        ${newToken}   (shown only once)`,
    ...(startLink === undefined
      ? []
      : ["", "Sign in at the console with this link, once, within ten minutes:", "", `  ${startLink}`]),
    "",
    "For curl, the official TypeScript, Python and Go clients, and the Terraform provider:",
    "",
    `  export CLOUDFLARE_BASE_URL=${ready.api}`,
    `  export CLOUDFLARE_API_TOKEN=${newToken}`,
    `  export CLOUDFLARE_ACCOUNT_ID=${ready.account_id}`,
    "",
    "wrangler needs in addition:",
    "",
    `  export CLOUDFLARE_API_BASE_URL=${ready.api}`,
  ].join("\n")}\n`;
}
