import { useState } from "preact/hooks";
import { navigate } from "../../core/router.ts";
import type { Zone } from "../../core/zone.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { SelectField, TextField } from "../../parts/form.tsx";

/** Adds a zone, and goes to it. */
export function AddZone({ account, onClose }: { account: string; onClose: () => void }) {
  const [name, setName] = useState("");
  const [type, setType] = useState<"full" | "partial">("full");
  return (
    <FormDialog<Zone>
      title="Add a zone"
      call={{ op: "POST /zones", body: { name: name.trim(), account: { id: account }, type } }}
      submit="Add the zone"
      done={`${name} was added`}
      invalidates={["/zones"]}
      onClose={onClose}
      onDone={(zone) => {
        onClose();
        navigate(`/${account}/zones/${zone.name}`);
      }}
    >
      <TextField
        label="Domain"
        name="name"
        value={name}
        onChange={setName}
        placeholder="example.com"
        autofocus
        isMono
      />
      <SelectField
        label="Type"
        name="type"
        value={type}
        onChange={setType}
        options={[
          { value: "full", label: "Full: this installation's name servers answer" },
          { value: "partial", label: "Partial: another name server answers, with CNAMEs to this one" },
        ]}
      />
    </FormDialog>
  );
}
