import { useState } from "preact/hooks";
import runtime from "virtual:runtime";
import { useGet } from "../../core/cache.ts";
import { useShortcuts } from "../../core/keys.ts";
import { rowsOf } from "../../core/pages.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href, navigate, useSearch } from "../../core/router.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { Button } from "../../parts/button.tsx";
import { Filter } from "../../parts/filter.tsx";
import { TextField, useForm } from "../../parts/form.tsx";
import { Grid, type Column } from "../../parts/grid.tsx";
import { Page, Time } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { formOf, refusalOf, type FolderCode } from "./folder.ts";
import { FolderField } from "./folder-field.tsx";
import { one, type Script } from "./script.ts";

const addressOf = (account: string, { id }: Pick<Script, "id">): string =>
  `/${account}/scripts/${encodeURIComponent(id)}`;

const columnsOf = (account: string): Column<Script>[] => [
  {
    key: "name",
    title: "Name",
    width: "minmax(140px, 2fr)",
    cell: (script) => <a href={href(addressOf(account, script))}>{script.id}</a>,
  },
  {
    key: "handlers",
    title: "Handlers",
    width: "minmax(100px, 1fr)",
    cell: ({ handlers, has_assets }) => [...handlers, ...(has_assets ? ["assets"] : [])].join(", ") || "–",
  },
  {
    key: "tags",
    title: "Tags",
    width: "minmax(80px, 1fr)",
    isExtra: true,
    cell: ({ tags }) => <span class="faint">{tags.join(" · ")}</span>,
  },
  {
    key: "modified",
    title: "Changed",
    width: "120px",
    cell: ({ modified_on }) => <Time at={modified_on} />,
  },
];

/** The scripts of the account. */
export default function Scripts({ account }: ScreenProps) {
  const scripts = useGet<Script[]>(`/accounts/${account}/workers/scripts`);
  const [filter, setFilter] = useSearch("filter");
  const [isAdding, setAdding] = useState(false);
  const refusal = useRefusal()(`PUT ${one}`);
  useShortcuts([{ keys: "n", label: "New script", run: () => refusal === undefined && setAdding(true) }]);
  const add = (
    <Button icon="plus" kind="primary" refusal={refusal} onPress={() => setAdding(true)}>
      New script
    </Button>
  );
  return (
    <Page title="Scripts" actions={add}>
      <div class="toolbar">
        <Filter label="Filter scripts by name or tag" value={filter} onChange={setFilter} />
      </div>
      <Loaded
        of={scripts}
        empty={
          <Empty icon="scripts" title="No script yet" actions={add}>
            <p>
              Or <code>wrangler deploy</code>.
            </p>
          </Empty>
        }
      >
        {(list) => {
          const shown = list.filter(({ id, tags }) => [id, ...tags].some((text) => text.includes(filter)));
          return shown.length === 0 ? (
            <Empty icon="search" title="No script matches this filter" />
          ) : (
            <Grid
              label="Scripts"
              columns={columnsOf(account)}
              rows={rowsOf(shown)}
              keyOf={({ id }) => id}
              onOpen={(script) => navigate(addressOf(account, script))}
            />
          );
        }}
      </Loaded>
      {isAdding && (
        <NewScript
          account={account}
          names={scripts.data?.map(({ id }) => id) ?? []}
          onClose={() => setAdding(false)}
        />
      )}
    </Page>
  );
}

const first = `export default {
  async fetch(request, env) {
    return new Response("Hello");
  },
};
`;

const moduleType = "application/javascript+module";
const sources = [
  { key: "text", name: "Type it" },
  { key: "folder", name: "From a folder" },
] as const;

interface NewScriptProps {
  account: string;
  /** Of other scripts, whose code an upload would replace. */
  names: readonly string[];
  onClose: () => void;
}

function NewScript({ account, names, onClose }: NewScriptProps) {
  const { values, set } = useForm({ name: "", date: runtime.date, code: first });
  const [source, setSource] = useState<"text" | "folder">("text");
  const [folder, setFolder] = useState<FolderCode>();
  const typed = { path: "index.js", file: new File([values.code], "index.js", { type: moduleType }) };
  const code = source === "text" ? { main: "index.js", modules: [typed] } : folder;
  const metadata = { main_module: code?.main ?? "", compatibility_date: values.date };
  const body = formOf(metadata, code?.modules ?? []);
  const unnamed = values.name === "" ? "give it a name" : undefined;
  const taken = names.includes(values.name) ? "another script has this name" : undefined;
  return (
    <FormDialog<{ id: string }>
      title="New script"
      size="side"
      call={{ op: `PUT ${one}`, params: { account_id: account, script_name: values.name }, body }}
      submit="Upload"
      done="The script was uploaded"
      refusal={unnamed ?? taken ?? (source === "folder" ? refusalOf(folder) : undefined)}
      invalidates={[`/accounts/${account}/workers/scripts`]}
      onClose={onClose}
      onDone={(script) => navigate(addressOf(account, script))}
    >
      {() => (
        <>
          <TextField
            label="Name"
            value={values.name}
            onChange={(name) => set("name", name)}
            hint="Small letters, digits, - and _"
            isMono
            autofocus
          />
          <TextField
            label="Compatibility date"
            type="date"
            value={values.date}
            onChange={(date) => set("date", date)}
            isNarrow
          />
          <Tabs label="Code" tabs={sources} current={source} onChange={setSource}>
            {source === "text" ? (
              <TextField
                label="index.js"
                value={values.code}
                onChange={(text) => set("code", text)}
                rows={18}
                isMono
              />
            ) : (
              <FolderField value={folder} onChange={setFolder} />
            )}
          </Tabs>
        </>
      )}
    </FormDialog>
  );
}
