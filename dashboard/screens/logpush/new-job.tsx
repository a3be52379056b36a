import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { plural } from "../../core/format.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { SelectField, Switch, TextField } from "../../parts/form.tsx";
import type { Owner } from "./job.ts";

/** Makes a job. The server uploads a small file to the destination first. */
export function NewJob({ owner, onClose }: { owner: Owner; onClose: () => void }) {
  const [name, setName] = useState("");
  const [dataSet, setDataSet] = useState(owner.dataSets[0]!.value);
  const [destination, setDestination] = useState("");
  const [isOn, setOn] = useState(true);
  // Those that a person has removed: a data set begins with all of its fields.
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const fields = useGet<Record<string, string>>(`${owner.path}/datasets/${dataSet}/fields`);
  const names = Object.keys(fields.data ?? {});
  const chosen = names.filter((each) => !left.has(each));
  return (
    <FormDialog
      title="New Logpush job"
      size="side"
      call={{
        op: `POST ${owner.op}/jobs`,
        params: owner.params,
        body: {
          name,
          dataset: dataSet,
          destination_conf: destination,
          enabled: isOn,
          output_options: { field_names: chosen },
        },
      }}
      submit="Create the job"
      done="The job was created"
      refusal={
        destination.trim() === ""
          ? "name a destination first"
          : chosen.length === 0
            ? "choose a field first"
            : undefined
      }
      invalidates={[owner.path]}
      onClose={onClose}
    >
      <TextField label="Name" name="name" value={name} onChange={setName} autofocus />
      <SelectField label="Data set" value={dataSet} onChange={setDataSet} options={owner.dataSets} />
      <TextField
        label="Destination"
        name="destination_conf"
        value={destination}
        onChange={setDestination}
        placeholder="s3://bucket/logs/{DATE}?region=eu-central-1&access-key-id=…"
        hint="A bucket, or an HTTPS address that takes gzipped lines of JSON. A small file is uploaded as a test."
        rows={3}
        isMono
      />
      <Switch label="Upload now" hint="Otherwise the job is paused." isOn={isOn} onChange={setOn} />
      <details>
        <summary>{plural(chosen.length, "field")}</summary>
        <fieldset class="choices">
          <legend>Fields</legend>
          {names.map((each) => (
            <label key={each} title={fields.data?.[each]}>
              <input
                type="checkbox"
                checked={!left.has(each)}
                onChange={() => {
                  const next = new Set(left);
                  if (!next.delete(each)) next.add(each);
                  setLeft(next);
                }}
              />
              {each}
            </label>
          ))}
        </fieldset>
      </details>
    </FormDialog>
  );
}
