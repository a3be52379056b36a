import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { bytes, plural } from "../../core/format.ts";
import { setSearch } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { ChangesTable } from "../../parts/changes-table.tsx";
import { SelectField } from "../../parts/form.tsx";
import { Card, Notice, State } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import { ChangedLines, textLengthMax } from "./changed-lines.tsx";
import { useComparison, type ChangedModule, type Comparison } from "./comparison.ts";
import type { Module } from "./modules.ts";
import { shortId, type ScriptPlace, type Version } from "./script.ts";

interface DifferenceProps {
  place: ScriptPlace;
  versions: readonly Version[];
  /** The ids of the version before and of the one after. */
  from: string;
  to: string;
}

/** Two versions of a script beside each other: their code line by line, their settings and bindings. */
export function Difference({ place, versions, from, to }: DifferenceProps) {
  const comparison = useComparison(place, from, to);
  return (
    <div class="stack">
      <Card
        title="Difference of two versions"
        actions={
          <>
            <Button icon="refresh" onPress={() => setSearch({ from: to, to: from })}>
              Swap
            </Button>
            <Button onPress={() => setSearch({ from: "", to: "" }, false)}>All versions</Button>
          </>
        }
      >
        <div class="form-row">
          <Choice label="Before" name="from" value={from} versions={versions} />
          <Choice label="After" name="to" value={to} versions={versions} />
        </div>
      </Card>
      {from === to ? (
        <Notice>This is the same version twice.</Notice>
      ) : (
        <Loaded of={comparison} rows={10}>
          {(data) => <Changes key={`${from} ${to}`} {...data} />}
        </Loaded>
      )}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  name: "from" | "to";
  value: string;
  versions: readonly Version[];
}

function Choice({ label, name, value, versions }: ChoiceProps) {
  const options = versions.map(({ id, number, annotations }) => ({
    value: id,
    label: [number, shortId(id), annotations["workers/message"]].filter(Boolean).join(" · "),
  }));
  // A link may name a version that is older than those of the list.
  if (!options.some((option) => option.value === value)) options.push({ value, label: shortId(value) });
  return (
    <SelectField label={label} value={value} onChange={(id) => setSearch({ [name]: id })} options={options} />
  );
}

/** So many modules are open at first. */
const openMax = 5;

const Changes = ({ modules, same, settings }: Comparison) => (
  <>
    <Card title="Settings and bindings">
      {settings.length === 0 ? <p>They are the same.</p> : <ChangesTable fields={settings} />}
      <p class="hint">Values of secrets are neither shown nor compared.</p>
    </Card>
    <Card title="Code">
      {modules.length === 0 && <p>It is the same.</p>}
      {modules.map((module, index) => (
        <ModuleChange key={module.name} module={module} isFirst={index < openMax} />
      ))}
      {modules.length > 0 && same > 0 && <p class="hint">{plural(same, "module")} without a change.</p>}
    </Card>
  </>
);

/** One module. Its lines are compared when it is opened. */
function ModuleChange({ module, isFirst }: { module: ChangedModule; isFirst: boolean }) {
  const [isOpen, setOpen] = useState(isFirst);
  const { name, before, after } = module;
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <code>{name}</code>{" "}
        {before === undefined ? (
          <State tone="ok">added</State>
        ) : after === undefined ? (
          <State tone="bad">removed</State>
        ) : (
          <State tone="info">changed</State>
        )}
      </summary>
      {isOpen && contentOf(module)}
    </details>
  );
}

const sizeOf = (module: Module | undefined): string =>
  module === undefined ? "nothing" : `${bytes(module.file.size)} of ${module.file.type}`;

function contentOf({ name, before, after }: ChangedModule): ComponentChildren {
  const [old, next] = [before === undefined ? "" : before.text, after === undefined ? "" : after.text];
  const sizes = `${sizeOf(before)} before, ${sizeOf(after)} after`;
  if (old === undefined || next === undefined) return <Notice>It is not text: {sizes}.</Notice>;
  if (old.length > textLengthMax || next.length > textLengthMax)
    return (
      <Notice tone="warn">
        It is too large to be compared line by line: {sizes}. The limit is {bytes(textLengthMax)}.
      </Notice>
    );
  if (old === next) return <Notice>Only its type has changed: {sizes}.</Notice>;
  return <ChangedLines label={name} before={old} after={next} />;
}
