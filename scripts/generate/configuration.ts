import type { Setting } from "../../src/config/setting.ts";
import { settings } from "../../src/config/settings.ts";

/** docs/reference/configuration.md: every setting, from its declaration. */
export function configurationPage(): string {
  const rows = Object.values(settings).map((setting: Setting) => {
    const value = setting.default === undefined ? "–" : `\`${JSON.stringify(setting.default)}\``;
    return `| \`--${setting.flag}\` | \`${setting.env}\` | ${value} | ${kind(setting)} | ${setting.describe} |`;
  });
  return `# Configuration

Made from \`src/config/settings.ts\` by \`npm run generate\`. A flag wins over the environment, the environment over the
file (\`selvedge.toml\`, or the one that \`--config\` or \`SELVEDGE_CONFIG\` names; its keys are the flags' names), and the file over
the default. \`selvedge config print\` shows each value and where it came from. An unknown key is an error.

| flag | environment | default | value | meaning |
|---|---|---|---|---|
${rows.join("\n")}
`;
}

function kind(setting: Setting): string {
  switch (setting.kind) {
    case "choice":
      return setting.choices.join(", ");
    case "count":
      return `${setting.min} to ${setting.max}`;
    case "flag":
      return "true, false";
    case "address":
      return "address:port";
    case "list":
      return "list, by commas";
    case "text":
      return setting.secret === true ? "text, secret" : "text";
  }
}
