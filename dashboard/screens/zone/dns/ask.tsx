import { useState } from "preact/hooks";
import { Code } from "../../../code/as-code.tsx";
import { useZone } from "../../../core/zone.ts";
import { Dialog } from "../../../parts/dialog.tsx";
import { ActionForm, SelectField, Switch, TextField, useForm } from "../../../parts/form.tsx";
import { recordTypes } from "./record.ts";

const types = [...new Set([...recordTypes, "NS", "SOA", "DNSKEY", "DS", "ANY"])];

/** Asks the name server for a name of the zone, and shows its answer as dig prints it. */
export function AskDialog({ onClose }: { onClose: () => void }) {
  const zone = useZone();
  const { values, set, field } = useForm({ name: zone.name, type: "A", isSigned: true });
  const [text, setText] = useState<string | undefined>(undefined);
  return (
    <Dialog title="Ask the name server" kind="wide" onClose={onClose}>
      <ActionForm<{ text: string }>
        call={{
          op: "POST /zones/{zone_id}/edge/dns_query",
          params: { zone_id: zone.id },
          body: { name: values.name, type: values.type, dnssec: values.isSigned },
        }}
        submit="Ask"
        isQuestion
        onCancel={onClose}
        onDone={(answer) => setText(answer.text)}
      >
        <TextField label="Name" {...field("name")} hint={`A name of ${zone.name}`} isMono autofocus />
        <SelectField
          label="Type"
          name="type"
          value={values.type}
          options={types}
          onChange={(type) => set("type", type)}
          isNarrow
        />
        <Switch
          label="With signatures"
          hint="Asks for DNSSEC"
          isOn={values.isSigned}
          onChange={(isSigned) => set("isSigned", isSigned)}
        />
      </ActionForm>
      {text !== undefined && (
        <div role="status" aria-label="The answer">
          <Code text={text} label="Answer" />
        </div>
      )}
    </Dialog>
  );
}
