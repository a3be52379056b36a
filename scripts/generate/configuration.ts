import type { Setting } from "../../src/platform/config/setting.ts";
import { settings } from "../../src/platform/config/settings.ts";

/** The text of docs/reference/configuration.md: every setting, from its declaration. */
export function configurationPage(): string {
  const rows = Object.values(settings).map((setting: Setting) => {
    const value = setting.default === undefined ? "–" : `\`${JSON.stringify(setting.default)}\``;
    const names = [setting.env, setting.alsoEnv ?? []].flat().map((name) => `\`${name}\``);
    return `| \`--${setting.flag}\` | ${names.join(", else ")} | ${value} | ${kind(setting)} | ${setting.describe} |`;
  });
  return `# Configuration

\`npm run generate\` makes this page from the \`declaration.ts\` of each capability.

A flag overrides the environment, the environment overrides the file, and the file overrides the default. The
file is \`selvedge.toml\`, or the one that \`--config\` or \`SELVEDGE_CONFIG\` names; its keys are the names of the
flags. \`selvedge config print\` shows each value and its source. An unknown key is an error.

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
      return "comma-separated list";
    case "text":
      return setting.secret === true ? "text, secret" : "text";
  }
}
