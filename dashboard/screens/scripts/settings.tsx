import type { Query } from "../../core/cache.ts";
import { Card, Facts } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import type { ScriptSettings } from "./script.ts";

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** The target of a binding: everything beside its name and type. */
const targetOf = (binding: ScriptSettings["bindings"][number]): string =>
  Object.entries(binding)
    .filter(([key]) => key !== "name" && key !== "type")
    .map(([key, value]) => `${key}: ${shown(value)}`)
    .join(", ");

/** The settings of a script, and what it is bound to. They come with its upload. */
export const Settings = ({ settings }: { settings: Query<ScriptSettings> }) => (
  <Loaded of={settings}>
    {(data) => (
      <div class="stack">
        <Card title="Runtime">
          <Facts
            facts={[
              ["Compatibility date", data.compatibility_date || "–"],
              ["Flags", data.compatibility_flags.join(", ") || "–"],
              ["Usage model", data.usage_model],
              [
                "Limits",
                Object.entries(data.limits)
                  .map(([name, value]) => `${name} ${shown(value)}`)
                  .join(", ") || "those of the installation",
              ],
              ["Tags", data.tags.join(", ") || "–"],
            ]}
          />
        </Card>
        <Card title="Bindings">
          {data.bindings.length === 0 ? (
            <p>The script is bound to nothing.</p>
          ) : (
            <Table
              label="Bindings"
              rows={data.bindings}
              keyOf={({ name }) => name}
              columns={[
                { title: "Name", cell: ({ name }) => <code>env.{name}</code> },
                { title: "Type", cell: ({ type }) => type },
                { title: "To", isWide: true, cell: targetOf },
              ]}
            />
          )}
        </Card>
      </div>
    )}
  </Loaded>
);
