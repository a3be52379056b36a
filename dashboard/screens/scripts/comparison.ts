import { useAsync } from "../../core/async.ts";
import { get } from "../../core/client.ts";
import type { Query } from "../../core/cache.ts";
import type { ChangedField } from "../../parts/changes-table.tsx";
import { readCode, type Code, type Module } from "./modules.ts";
import type { ScriptPlace, Version } from "./script.ts";

interface FullVersion extends Version {
  resources: {
    bindings: ({ type: string; name: string } & Record<string, unknown>)[];
    script_runtime: {
      compatibility_date: string;
      compatibility_flags: string[];
      usage_model: string;
      limits: Record<string, number>;
    };
  };
}

/** A module that is not the same in both versions. Undefined: the version does not have it. */
export interface ChangedModule {
  name: string;
  before: Module | undefined;
  after: Module | undefined;
}

export interface Comparison {
  modules: ChangedModule[];
  /** The number of modules that are the same. */
  same: number;
  settings: ChangedField[];
}

/** The settings and bindings of a version, by name. The API gives no values of secrets. */
function settingsOf({ resources }: FullVersion, { main }: Code): Map<string, string> {
  const { compatibility_date, compatibility_flags, usage_model, limits } = resources.script_runtime;
  const fields: [string, string][] = [
    ["main module", main],
    ["compatibility date", compatibility_date],
    ["compatibility flags", compatibility_flags.join(", ")],
    ["usage model", usage_model],
    ...Object.entries(limits).map(([name, value]): [string, string] => [`limit ${name}`, String(value)]),
    ...resources.bindings.map(({ name, type, ...rest }): [string, string] => [
      `binding ${name}`,
      Object.keys(rest).length === 0 ? type : `${type} ${JSON.stringify(rest)}`,
    ]),
  ];
  return new Map(fields.filter(([, value]) => value !== ""));
}

function changedFields(before: Map<string, string>, after: Map<string, string>): ChangedField[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .map((path) => ({ path, before: before.get(path), after: after.get(path) }))
    .filter((field) => field.before !== field.after);
}

async function isSame(before: Module | undefined, after: Module | undefined): Promise<boolean> {
  if (before === undefined || after === undefined || before.file.type !== after.file.type) return false;
  if (before.text !== undefined || before.file.size !== after.file.size) return before.text === after.text;
  const [old, next] = await Promise.all([before.file.bytes(), after.file.bytes()]);
  return old.every((byte, index) => byte === next[index]);
}

/** The differences of two versions of a script in code, settings and bindings. Equal ids: no call. */
export function useComparison({ path, code }: ScriptPlace, from: string, to: string): Query<Comparison> {
  return useAsync(from === to ? undefined : `${path} ${from} ${to}`, async (signal) => {
    const read = async (id: string) =>
      Promise.all([
        readCode(code, id, signal),
        get<FullVersion>(`${path}/versions/${encodeURIComponent(id)}`, signal),
      ]);
    const [[oldCode, old], [newCode, next]] = await Promise.all([read(from), read(to)]);
    const names = new Set([...oldCode.modules, ...newCode.modules].map(({ name }) => name));
    const modules: ChangedModule[] = [];
    for (const name of names) {
      const before = oldCode.modules.find((module) => module.name === name);
      const after = newCode.modules.find((module) => module.name === name);
      if (!(await isSame(before, after))) modules.push({ name, before, after });
    }
    return {
      modules,
      same: names.size - modules.length,
      settings: changedFields(settingsOf(old.result, oldCode), settingsOf(next.result, newCode)),
    };
  });
}
