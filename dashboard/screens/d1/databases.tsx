import { useState } from "preact/hooks";
import { useShortcuts } from "../../core/keys.ts";
import { useRows } from "../../core/pages.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href, navigate, useSearch } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { Filter } from "../../parts/filter.tsx";
import { SelectField, TextField, useForm } from "../../parts/form.tsx";
import { Grid, type Column } from "../../parts/grid.tsx";
import { Page, Time } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import type { Database } from "./database.ts";

const op = "POST /accounts/{account_id}/d1/database";

const columnsOf = (account: string): Column<Database>[] => [
  {
    key: "name",
    title: "Name",
    width: "minmax(140px, 2fr)",
    cell: ({ name }) => <a href={href(`/${account}/d1/${name}`)}>{name}</a>,
  },
  {
    key: "id",
    title: "Id",
    width: "minmax(140px, 2fr)",
    isExtra: true,
    cell: ({ uuid }) => <code>{uuid}</code>,
  },
  { key: "created", title: "Created", width: "120px", cell: ({ created_at }) => <Time at={created_at} /> },
];

/** The D1 databases of the account. */
export default function Databases({ account }: ScreenProps) {
  const [search, setSearch] = useSearch("name");
  const path = `/accounts/${account}/d1/database${search === "" ? "" : `?name=${encodeURIComponent(search)}`}`;
  const rows = useRows<Database>(path, 100);
  const [isAdding, setAdding] = useState(false);
  const refusal = useRefusal()(op);
  useShortcuts([{ keys: "n", label: "New database", run: () => refusal === undefined && setAdding(true) }]);
  const add = (
    <Button icon="plus" kind="primary" refusal={refusal} onPress={() => setAdding(true)}>
      New database
    </Button>
  );
  return (
    <Page title="D1 databases" actions={add}>
      <div class="toolbar">
        <Filter label="Filter databases by name" value={search} onChange={setSearch} />
      </div>
      <Loaded
        of={rows.first}
        empty={
          search === "" ? (
            <Empty icon="database" title="No database yet" actions={add}>
              <p>
                Or <code>wrangler d1 create visits</code>.
              </p>
            </Empty>
          ) : (
            <Empty icon="search" title="No database has this name" />
          )
        }
      >
        {() => (
          <Grid
            label="Databases"
            columns={columnsOf(account)}
            rows={rows}
            keyOf={({ uuid }) => uuid}
            onOpen={({ name }) => navigate(`/${account}/d1/${name}`)}
          />
        )}
      </Loaded>
      {isAdding && <NewDatabase account={account} onClose={() => setAdding(false)} />}
    </Page>
  );
}

const regions = ["wnam", "enam", "weur", "eeur", "apac", "oc"] as const;

function NewDatabase({ account, onClose }: { account: string; onClose: () => void }) {
  const { values, field } = useForm({ name: "", primary_location_hint: "" });
  const { name, primary_location_hint: hint } = values;
  return (
    <FormDialog<Database>
      title="New database"
      call={{
        op,
        params: { account_id: account },
        body: { name, ...(hint !== "" && { primary_location_hint: hint }) },
      }}
      submit="Create the database"
      done="The database was created"
      invalidates={[`/accounts/${account}/d1/database`]}
      onClose={onClose}
      onDone={(made) => navigate(`/${account}/d1/${made.name}`)}
    >
      <TextField label="Name" {...field("name")} hint="Letters, digits, - and _" isMono autofocus />
      <SelectField
        label="Location hint"
        {...field("primary_location_hint")}
        hint="It is kept, and has no effect here."
        options={[{ value: "", label: "none" }, ...regions]}
      />
    </FormDialog>
  );
}
