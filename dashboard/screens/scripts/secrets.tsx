import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { useRefusal } from "../../core/permissions.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { TextField, useForm } from "../../parts/form.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import type { ScriptPlace } from "./script.ts";

interface TabProps {
  place: ScriptPlace;
}
interface Secret {
  name: string;
  type: string;
}
type Open = { kind: "write"; name: string } | { kind: "delete"; name: string } | undefined;

/** The secrets of a script, by name. The API never shows their values. */
export function Secrets({ place }: TabProps) {
  const path = `${place.path}/secrets`;
  const secrets = useGet<Secret[]>(path);
  const [open, setOpen] = useState<Open>(undefined);
  const refusal = useRefusal()(`PUT ${place.one}/secrets`);
  const close = (): void => setOpen(undefined);
  const add = (
    <Button icon="plus" kind="primary" refusal={refusal} onPress={() => setOpen({ kind: "write", name: "" })}>
      Add a secret
    </Button>
  );
  return (
    <>
      <Loaded
        of={secrets}
        empty={
          <Empty icon="lock" title="No secret yet" actions={add}>
            <p>
              Or <code>wrangler secret put NAME</code>.
            </p>
          </Empty>
        }
      >
        {(list) => (
          <div class="stack">
            <div class="row">{add}</div>
            <Table
              label="Secrets"
              rows={list}
              keyOf={(secret) => secret.name}
              columns={[
                { title: "Name", isWide: true, cell: (secret) => <code>env.{secret.name}</code> },
                { title: "Value", cell: () => <span class="faint">never shown</span> },
              ]}
              actions={(secret) => (
                <div class="row">
                  <Button
                    icon="edit"
                    kind="quiet"
                    label={`Replace ${secret.name}`}
                    refusal={refusal}
                    onPress={() => setOpen({ kind: "write", name: secret.name })}
                  />
                  <Button
                    icon="trash"
                    kind="quiet"
                    label={`Delete ${secret.name}`}
                    refusal={refusal}
                    onPress={() => setOpen({ kind: "delete", name: secret.name })}
                  />
                </div>
              )}
            />
          </div>
        )}
      </Loaded>
      {open?.kind === "write" && (
        <SecretDialog place={place} secret={open.name} path={path} onClose={close} />
      )}
      {open?.kind === "delete" && (
        <Confirm
          title={`Delete ${open.name}`}
          submit="Delete"
          call={{
            op: `DELETE ${place.one}/secrets/{secret_name}`,
            params: { ...place.params, secret_name: open.name },
          }}
          done="The secret was deleted"
          invalidates={[path]}
          onClose={close}
        >
          <p>The script runs without it at once.</p>
        </Confirm>
      )}
    </>
  );
}

interface DialogProps extends TabProps {
  /** Empty for a new one. */
  secret: string;
  path: string;
  onClose: () => void;
}

function SecretDialog({ place, secret, path, onClose }: DialogProps) {
  const { values, field } = useForm({ name: secret, text: "" });
  return (
    <FormDialog
      title={secret === "" ? "Add a secret" : `Replace ${secret}`}
      call={{
        op: `PUT ${place.one}/secrets`,
        params: place.params,
        body: { name: values.name, text: values.text, type: "secret_text" },
      }}
      submit="Save"
      done="The secret was saved"
      refusal={values.name === "" ? "give it a name" : undefined}
      invalidates={[path]}
      onClose={onClose}
    >
      {secret === "" && <TextField label="Name" {...field("name")} isMono autofocus />}
      <TextField label="Value" {...field("text")} type="password" />
    </FormDialog>
  );
}
