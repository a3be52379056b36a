import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { count } from "../../core/format.ts";
import { useShortcuts } from "../../core/keys.ts";
import { rowsOf } from "../../core/pages.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href, navigate } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { TextField, useForm } from "../../parts/form.tsx";
import { Grid } from "../../parts/grid.tsx";
import { Page, State, Time } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { namespacesPath, placeOf, type Namespace } from "./namespace.ts";

const op = "POST /accounts/{account_id}/edge/dispatch/namespaces";

/** The namespaces of customers' scripts. */
export default function Namespaces({ account }: ScreenProps) {
  const namespaces = useGet<Namespace[]>(namespacesPath(account));
  const [isAdding, setAdding] = useState(false);
  const refusal = useRefusal()(op);
  useShortcuts([
    { keys: "n", label: "New dispatch namespace", run: () => refusal === undefined && setAdding(true) },
  ]);
  const add = (
    <Button icon="plus" kind="primary" refusal={refusal} onPress={() => setAdding(true)}>
      New namespace
    </Button>
  );
  return (
    <Page title="Dispatch" about="Scripts of customers, which a script of yours calls." actions={add}>
      <Loaded
        of={namespaces}
        empty={
          <Empty icon="dispatch" title="No namespace yet" actions={add}>
            <p>
              Or <code>wrangler dispatch-namespace create production</code>.
            </p>
          </Empty>
        }
      >
        {(list) => (
          <Grid
            label="Namespaces"
            rows={rowsOf(list)}
            keyOf={({ namespace_id }) => namespace_id}
            onOpen={(row) => navigate(placeOf(account, row.namespace_name))}
            columns={[
              {
                key: "name",
                title: "Name",
                width: "minmax(140px, 2fr)",
                cell: ({ namespace_name: name }) => <a href={href(placeOf(account, name))}>{name}</a>,
              },
              {
                key: "customers",
                title: "Customers",
                width: "110px",
                isNumber: true,
                cell: ({ script_count }) => count(script_count),
              },
              {
                key: "state",
                title: "Customers are",
                width: "130px",
                cell: ({ trusted_workers }) =>
                  trusted_workers ? (
                    <State tone="info">trusted</State>
                  ) : (
                    <State tone="off">not trusted</State>
                  ),
              },
              {
                key: "created",
                title: "Created",
                width: "120px",
                isExtra: true,
                cell: ({ created_on }) => <Time at={created_on} />,
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
  const { values, field } = useForm({ name: "" });
  return (
    <FormDialog<Namespace>
      title="New namespace"
      call={{ op, params: { account_id: account }, body: values }}
      submit="Create the namespace"
      done="The namespace was created"
      invalidates={[namespacesPath(account)]}
      onClose={onClose}
      onDone={(made) => navigate(placeOf(account, made.namespace_name))}
    >
      <TextField label="Name" {...field("name")} hint="Small letters, digits, - and _" isMono autofocus />
    </FormDialog>
  );
}
