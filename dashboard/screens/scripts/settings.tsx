import { useState } from "preact/hooks";
import type { Query } from "../../core/cache.ts";
import { useRefusal } from "../../core/permissions.ts";
import { Button } from "../../parts/button.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { TextField, useForm } from "../../parts/form.tsx";
import { Card, Facts } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import type { ScriptPlace, ScriptSettings } from "./script.ts";

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** The target of a binding: all of its fields except name and type. */
const targetOf = (binding: ScriptSettings["bindings"][number]): string =>
  Object.entries(binding)
    .filter(([key]) => key !== "name" && key !== "type")
    .map(([key, value]) => `${key}: ${shown(value)}`)
    .join(", ");

interface SettingsProps {
  place: ScriptPlace;
  settings: Query<ScriptSettings>;
}

/** The settings and bindings of a script. Bindings are set by its upload. */
export function Settings({ place, settings }: SettingsProps) {
  const [open, setOpen] = useState<"limits" | "tags" | undefined>(undefined);
  const refusal = useRefusal();
  const close = (): void => setOpen(undefined);
  return (
    <Loaded of={settings}>
      {(data) => (
        <div class="stack">
          <Card
            title="Runtime"
            actions={
              <>
                <Button
                  icon="edit"
                  refusal={refusal(`PATCH ${place.one}/settings`)}
                  onPress={() => setOpen("limits")}
                >
                  Limits
                </Button>
                <Button
                  icon="edit"
                  refusal={refusal(`PUT ${place.one}/tags`)}
                  onPress={() => setOpen("tags")}
                >
                  Tags
                </Button>
              </>
            }
          >
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
          {open === "limits" && <Limits place={place} data={data} onClose={close} />}
          {open === "tags" && <Tags place={place} data={data} onClose={close} />}
        </div>
      )}
    </Loaded>
  );
}

interface ChangeProps {
  place: ScriptPlace;
  data: ScriptSettings;
  onClose: () => void;
}

function Limits({ place, data, onClose }: ChangeProps) {
  const initial = (name: string): string => shown(data.limits[name] ?? "");
  const { values, field } = useForm({ cpu_ms: initial("cpu_ms"), subrequests: initial("subrequests") });
  const body = new FormData();
  const limits = Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === "" ? [] : [[name, Number(value)]])),
  );
  body.set("settings", new Blob([JSON.stringify({ limits })], { type: "application/json" }));
  return (
    <FormDialog
      title={`Limits of ${place.name}`}
      call={{ op: `PATCH ${place.one}/settings`, params: place.params, body }}
      submit="Save"
      done="The limits were saved"
      invalidates={[place.path]}
      onClose={onClose}
    >
      <TextField
        label="CPU time of a run in milliseconds"
        {...field("cpu_ms", "limits.cpu_ms")}
        type="number"
        hint="Empty: the limit of the installation"
        isNarrow
        autofocus
      />
      <TextField
        label="Subrequests of a run"
        {...field("subrequests", "limits.subrequests")}
        type="number"
        hint="Empty: the limit of the installation"
        isNarrow
      />
    </FormDialog>
  );
}

function Tags({ place, data, onClose }: ChangeProps) {
  const [text, setText] = useState(data.tags.join("\n"));
  const tags = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  return (
    <FormDialog
      title={`Tags of ${place.name}`}
      call={{ op: `PUT ${place.one}/tags`, params: place.params, body: tags }}
      submit="Save"
      done="The tags were saved"
      invalidates={[place.path, place.list]}
      onClose={onClose}
    >
      <TextField
        label="Tags"
        value={text}
        onChange={setText}
        rows={6}
        hint="One in each line"
        isMono
        autofocus
      />
    </FormDialog>
  );
}
