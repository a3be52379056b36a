import { useState } from "preact/hooks";
import { useShortcuts } from "../../core/keys.ts";
import { useRows } from "../../core/pages.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href, navigate } from "../../core/router.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { Button } from "../../parts/button.tsx";
import { TextField } from "../../parts/form.tsx";
import { Grid } from "../../parts/grid.tsx";
import { Page } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";

export interface Namespace {
  id: string;
  title: string;
}

const op = "POST /accounts/{account_id}/storage/kv/namespaces";

/** The key-value namespaces of the account. */
export default function Namespaces({ account }: ScreenProps) {
  const rows = useRows<Namespace>(`/accounts/${account}/storage/kv/namespaces?order=title`, 100);
  const [isAdding, setAdding] = useState(false);
  const refusal = useRefusal()(op);
  useShortcuts([
    { keys: "n", label: "New key-value namespace", run: () => refusal === undefined && setAdding(true) },
  ]);
  const add = (
    <Button icon="plus" kind="primary" refusal={refusal} onPress={() => setAdding(true)}>
      New namespace
    </Button>
  );
  return (
    <Page title="Key-value" actions={add}>
      <Loaded
        of={rows.first}
        empty={
          <Empty icon="kv" title="No namespace yet" actions={add}>
            <p>
              Or <code>wrangler kv namespace create settings</code>.
            </p>
          </Empty>
        }
      >
        {() => (
          <Grid
            label="Namespaces"
            rows={rows}
            keyOf={({ id }) => id}
            onOpen={({ id }) => navigate(`/${account}/kv/${id}`)}
            columns={[
              {
                key: "name",
                title: "Title",
                width: "minmax(140px, 1fr)",
                cell: ({ id, title }) => <a href={href(`/${account}/kv/${id}`)}>{title}</a>,
              },
              {
                key: "id",
                title: "Id",
                width: "minmax(140px, 1fr)",
                cell: ({ id }) => <code>{id}</code>,
                isExtra: true,
              },
            ]}
          />
        )}
      </Loaded>
      {isAdding && <NewNamespace account={account} onClose={() => setAdding(false)} />}
    </Page>
  );
}

function NewNamespace({ account, onClose }: { account: string; onClose: () => void }) {
  const [title, setTitle] = useState("");
  return (
    <FormDialog<Namespace>
      title="New namespace"
      call={{ op, params: { account_id: account }, body: { title } }}
      submit="Create the namespace"
      done="The namespace was created"
      invalidates={[`/accounts/${account}/storage/kv/namespaces`]}
      onClose={onClose}
      onDone={({ id }) => navigate(`/${account}/kv/${id}`)}
    >
      <TextField label="Title" name="title" value={title} onChange={setTitle} autofocus />
    </FormDialog>
  );
}
