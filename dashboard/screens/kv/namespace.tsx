import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { useCursorRows } from "../../core/cursor.ts";
import { count, plural } from "../../core/format.ts";
import { useShortcuts } from "../../core/keys.ts";
import { useRefusal } from "../../core/permissions.ts";
import { navigate, useSearch } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { ChosenBar } from "../../parts/chosen-bar.tsx";
import { useChosen } from "../../parts/chosen.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Filter } from "../../parts/filter.tsx";
import { Grid, type Column } from "../../parts/grid.tsx";
import { Copyable, Page, Time } from "../../parts/layout.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import type { Namespace } from "./namespaces.tsx";
import { NewValue, StoredValue } from "./value.tsx";

export interface Key {
  name: string;
  /** In seconds since 1970. */
  expiration?: number;
  metadata?: unknown;
}

const one = "/accounts/{account_id}/storage/kv/namespaces/{namespace_id}";
const partKeys = 500;
/** The most that one call deletes. */
const chosenMax = 10_000;

const columns: Column<Key>[] = [
  {
    key: "name",
    title: "Key",
    width: "minmax(160px, 2fr)",
    cell: ({ name }) => (
      <code title={name} class="key-name">
        {name}
      </code>
    ),
  },
  {
    key: "metadata",
    title: "Metadata",
    width: "minmax(100px, 1fr)",
    isExtra: true,
    cell: ({ metadata }) => (metadata === undefined ? "" : <code>{JSON.stringify(metadata)}</code>),
  },
  {
    key: "expiration",
    title: "Expires",
    width: "120px",
    cell: ({ expiration }) =>
      expiration === undefined ? <span class="faint">never</span> : <Time at={expiration * 1000} />,
  },
];

/** The keys of a namespace, by prefix. */
export default function NamespaceScreen({ account, params }: ScreenProps) {
  const id = params["namespace"]!;
  const namespace = useGet<Namespace>(`/accounts/${account}/storage/kv/namespaces/${id}`);
  return (
    <Loaded of={namespace}>{(data) => <Keys key={data.id} account={account} namespace={data} />}</Loaded>
  );
}

function Keys({ account, namespace }: { account: string; namespace: Namespace }) {
  const [prefix, setPrefix] = useSearch("prefix");
  const [openKey, setOpenKey] = useSearch("key");
  const [open, setOpen] = useState<"new" | "delete" | "keys" | undefined>(undefined);
  const query = new URLSearchParams({ limit: String(partKeys), ...(prefix !== "" && { prefix }) });
  const rows = useCursorRows<Key>(`/accounts/${account}/storage/kv/namespaces/${namespace.id}/keys?${query}`);
  const chosen = useChosen(rows, ({ name }) => name, { max: chosenMax, of: prefix });
  const refusal = useRefusal();
  const edit = refusal(`PUT ${one}/values/{key_name}`);
  useShortcuts([{ keys: "n", label: "Add a key", run: () => edit === undefined && setOpen("new") }]);
  const add = (
    <Button icon="plus" kind="primary" refusal={edit} onPress={() => setOpen("new")}>
      Add a key
    </Button>
  );
  const done = (): void => {
    setOpen(undefined);
    setOpenKey("");
    rows.first.reload();
  };
  return (
    <Page
      title={namespace.title}
      about={<Copyable text={namespace.id} />}
      up={{ name: "Key-value", path: `/${account}/kv` }}
      actions={
        <>
          <Menu
            label="More"
            items={[
              {
                label: "Delete the namespace",
                icon: "trash",
                kind: "bad",
                refusal: refusal(`DELETE ${one}`),
                onSelect: () => setOpen("delete"),
              },
            ]}
          />
          {add}
        </>
      }
    >
      <div class="toolbar">
        <Filter label="Keys that begin with" placeholder="Prefix" value={prefix} onChange={setPrefix} />
        <span class="faint" role="status">
          {count(rows.count)}
          {rows.hasMore ? " keys so far" : rows.count === 1 ? " key" : " keys"}
        </span>
      </div>
      <Loaded
        of={rows.first}
        empty={
          prefix === "" ? (
            <Empty icon="kv" title="No key yet" actions={add} />
          ) : (
            <Empty icon="search" title="No key begins with this" />
          )
        }
      >
        {() => (
          <>
            <ChosenBar noun="key" of={chosen}>
              <Button kind="bad" icon="trash" refusal={edit} onPress={() => setOpen("keys")}>
                Delete
              </Button>
            </ChosenBar>
            <Grid
              label="Keys"
              selection={chosen}
              columns={columns}
              rows={rows}
              keyOf={({ name }) => name}
              openKey={openKey}
              onOpen={({ name }) => setOpenKey(name, false)}
            />
          </>
        )}
      </Loaded>
      {open === "new" && (
        <NewValue
          account={account}
          namespace={namespace.id}
          onDone={done}
          onClose={() => setOpen(undefined)}
        />
      )}
      {openKey !== "" && (
        <StoredValue
          key={openKey}
          account={account}
          namespace={namespace.id}
          name={openKey}
          onDone={done}
          onClose={() => setOpenKey("")}
        />
      )}
      {open === "keys" && (
        <Confirm
          title={`Delete ${plural(chosen.keys.length, "key")}`}
          submit="Delete"
          call={{
            op: `POST ${one}/bulk/delete`,
            params: { account_id: account, namespace_id: namespace.id },
            body: chosen.keys,
          }}
          done="The keys were deleted"
          onDone={() => {
            chosen.clear();
            done();
          }}
          onClose={() => setOpen(undefined)}
        >
          <p>Scripts that are bound to the namespace no longer find them.</p>
        </Confirm>
      )}
      {open === "delete" && (
        <Confirm
          title={`Delete ${namespace.title}`}
          submit="Delete"
          typed={namespace.title}
          call={{ op: `DELETE ${one}`, params: { account_id: account, namespace_id: namespace.id } }}
          done="The namespace was deleted"
          invalidates={[`/accounts/${account}/storage/kv/namespaces`]}
          onDone={() => navigate(`/${account}/kv`)}
          onClose={() => setOpen(undefined)}
        >
          <p>All of its keys are deleted with it.</p>
        </Confirm>
      )}
    </Page>
  );
}
