import { useState } from "preact/hooks";
import type { Call } from "../../../core/client.ts";
import { useZone } from "../../../core/zone.ts";
import { Dialog } from "../../../parts/dialog.tsx";
import { ActionForm, Field, Switch, TextField } from "../../../parts/form.tsx";

interface Imported {
  recs_added: number;
  total_records_parsed: number;
}

/** Adds the records of a zone file. */
export function ImportDialog({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const zone = useZone();
  const [text, setText] = useState("");
  const [isProxied, setProxied] = useState(false);
  const body = new FormData();
  body.set("file", new File([text], "zone.txt", { type: "text/plain" }));
  body.set("proxied", String(isProxied));
  const call: Call = { op: "POST /zones/{zone_id}/dns_records/import", params: { zone_id: zone.id }, body };
  return (
    <Dialog title={`Import into ${zone.name}`} kind="wide" onClose={onClose}>
      <ActionForm<Imported>
        call={call}
        submit="Import"
        done="The zone file was imported"
        refusal={text.trim() === "" ? "paste a zone file or choose one" : undefined}
        invalidates={[`/zones/${zone.id}`]}
        onCancel={onClose}
        onDone={() => {
          onDone();
          onClose();
        }}
      >
        {(failure) => (
          <>
            <Field label="File">
              {(attributes) => (
                <input
                  {...attributes}
                  type="file"
                  onChange={(event) => {
                    void event.currentTarget.files?.[0]?.text().then(setText);
                  }}
                />
              )}
            </Field>
            <TextField
              label="Zone file"
              name="file"
              failure={failure}
              value={text}
              onChange={setText}
              rows={12}
              isMono
              placeholder="www 300 IN A 192.0.2.1"
            />
            <Switch
              label="Proxied"
              hint="For A, AAAA and CNAME records of the file."
              isOn={isProxied}
              onChange={setProxied}
            />
          </>
        )}
      </ActionForm>
    </Dialog>
  );
}
