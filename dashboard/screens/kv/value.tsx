import { useState } from "preact/hooks";
import { Code } from "../../code/as-code.tsx";
import { download } from "../../core/download.ts";
import { bytes } from "../../core/format.ts";
import { useRefusal } from "../../core/permissions.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ActionForm, Field, TextField, useForm } from "../../parts/form.tsx";
import { Notice } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import { shownBytesMax, useStored, type Stored } from "./stored.ts";

const path = "/accounts/{account_id}/storage/kv/namespaces/{namespace_id}/values/{key_name}";

interface ValueProps {
  account: string;
  namespace: string;
  onDone: () => void;
  onClose: () => void;
}

/** Writes a new key, from text or from a file. */
export const NewValue = (props: ValueProps) => (
  <Dialog title="Add a key" kind="side" onClose={props.onClose}>
    <ValueForm {...props} name={undefined} stored={undefined} />
  </Dialog>
);

/** The value of a key: read, edit, replace by a file, download, delete. */
export function StoredValue({ name, ...props }: ValueProps & { name: string }) {
  const [isAsked, setAsked] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const of = useStored(props.account, props.namespace, name, isAsked);
  const refusal = useRefusal()(`DELETE ${path}`);
  if (isDeleting)
    return (
      <Confirm
        title={`Delete ${name}`}
        submit="Delete"
        call={{
          op: `DELETE ${path}`,
          params: { account_id: props.account, namespace_id: props.namespace, key_name: name },
        }}
        done="The key was deleted"
        onDone={props.onDone}
        onClose={() => setDeleting(false)}
      >
        <p>Its value cannot be had back.</p>
      </Confirm>
    );
  return (
    <Dialog title={name} kind="side" onClose={props.onClose}>
      <Loaded of={of}>
        {(stored) => (
          <div class="stack">
            <div class="row">
              <span class="faint">{bytes(stored.blob.size)}</span>
              <Button icon="download" onPress={() => download(stored.blob, name)}>
                Download
              </Button>
              <Button icon="trash" kind="bad" refusal={refusal} onPress={() => setDeleting(true)}>
                Delete
              </Button>
            </div>
            {stored.text === undefined && stored.hex === undefined && (
              <Notice actions={<Button onPress={() => setAsked(true)}>Show it</Button>}>
                The value is longer than {bytes(shownBytesMax)}.
              </Notice>
            )}
            {stored.hex !== undefined && <Code text={stored.hex} label="The first bytes" />}
            <ValueForm key={String(isAsked)} {...props} name={name} stored={stored} />
          </div>
        )}
      </Loaded>
    </Dialog>
  );
}

/** The body of the call: a form with value and metadata, or only the value if there is no metadata. */
function bodyOf(value: Blob, metadata: string): FormData | Blob {
  if (metadata.trim() === "") return value;
  const form = new FormData();
  form.set("value", value);
  form.set("metadata", metadata);
  return form;
}

function ValueForm({
  account,
  namespace,
  name,
  stored,
  onDone,
  onClose,
}: ValueProps & { name: string | undefined; stored: Stored | undefined }) {
  const [file, setFile] = useState<File | undefined>(undefined);
  const { values, set } = useForm({
    name: name ?? "",
    text: stored?.text ?? "",
    metadata: stored?.metadata == null ? "" : JSON.stringify(stored.metadata),
    seconds: "",
  });
  const isText = stored === undefined || stored.text !== undefined;
  const value = file ?? (isText ? new Blob([values.text]) : stored.blob);
  const kept = values.seconds === "" ? stored?.expiration : undefined;
  return (
    <ActionForm
      call={{
        op: `PUT ${path}`,
        params: { account_id: account, namespace_id: namespace, key_name: values.name },
        query: {
          expiration_ttl: values.seconds === "" ? undefined : Number(values.seconds),
          expiration: kept,
        },
        body: bodyOf(value, values.metadata),
        ...(values.metadata.trim() === "" && { headers: { "content-type": "application/octet-stream" } }),
      }}
      submit="Save"
      done="The value was saved"
      refusal={values.name === "" ? "give it a name" : undefined}
      onCancel={onClose}
      onDone={onDone}
    >
      {() => (
        <>
          {name === undefined && (
            <TextField
              label="Key"
              value={values.name}
              onChange={(text) => set("name", text)}
              isMono
              autofocus
            />
          )}
          {isText && file === undefined && (
            <TextField
              label="Value"
              value={values.text}
              onChange={(text) => set("text", text)}
              rows={14}
              isMono
            />
          )}
          <Field label="Value from a file">
            {(attributes) => (
              <input
                {...attributes}
                type="file"
                onChange={(event) => setFile(event.currentTarget.files?.[0])}
              />
            )}
          </Field>
          <TextField
            label="Metadata"
            value={values.metadata}
            onChange={(text) => set("metadata", text)}
            hint="JSON, or empty"
            isMono
          />
          <TextField
            label="Expires in seconds"
            type="number"
            value={values.seconds}
            onChange={(text) => set("seconds", text)}
            hint={stored?.expiration === undefined ? "Empty: never" : "Empty: as it is"}
            isNarrow
          />
        </>
      )}
    </ActionForm>
  );
}
