import { useState } from "preact/hooks";
import { useAction } from "../../core/action.ts";
import { useGet } from "../../core/cache.ts";
import { plural } from "../../core/format.ts";
import { useRows } from "../../core/pages.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href, navigate, useSearch } from "../../core/router.ts";
import { AsCode } from "../../code/as-code.tsx";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Filter } from "../../parts/filter.tsx";
import { Switch } from "../../parts/form.tsx";
import { Grid, type Column } from "../../parts/grid.tsx";
import { Card, Page, Time } from "../../parts/layout.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { DeleteTagged } from "./delete-tagged.tsx";
import { UsageTab } from "./usage.tsx";
import { Faults, useFaults } from "./usage-of-customer.tsx";
import { namespacesPath, one, placeOf, tagFilter, type Customer, type Namespace } from "./namespace.ts";

const columnsOf = (base: string, faultsOf: ReturnType<typeof useFaults>): Column<Customer>[] => [
  {
    key: "name",
    title: "Customer",
    width: "minmax(140px, 2fr)",
    cell: ({ script }) => <a href={href(`${base}/${encodeURIComponent(script.id)}`)}>{script.id}</a>,
  },
  {
    key: "tags",
    title: "Tags",
    width: "minmax(100px, 2fr)",
    isBelow: true,
    cell: ({ script }) => <span class="faint">{script.tags.join(" · ")}</span>,
  },
  {
    key: "handlers",
    title: "Handlers",
    width: "minmax(100px, 1fr)",
    isExtra: true,
    cell: ({ script }) => [...script.handlers, ...(script.has_assets ? ["assets"] : [])].join(", ") || "–",
  },
  {
    key: "faults",
    title: "Faults",
    width: "76px",
    isNumber: true,
    cell({ script }) {
      const known = faultsOf(script.id);
      return known === undefined ? "–" : <Faults of={known} />;
    },
  },
  {
    key: "modified",
    title: "Changed",
    width: "110px",
    isExtra: true,
    cell: ({ modified_on }) => <Time at={modified_on} />,
  },
  {
    key: "logs",
    title: "Follow",
    width: "96px",
    cell: ({ script }) => <a href={href(`${base}/${encodeURIComponent(script.id)}?tab=logs`)}>Live logs</a>,
  },
];

const tabs = [
  { key: "customers", name: "Customers" },
  { key: "usage", name: "Usage and faults" },
] as const;

/** A namespace: its customers by tag, and those that have run lately. */
export default function Customers({ account, params }: ScreenProps) {
  const name = params["namespace"]!;
  const path = `${namespacesPath(account)}/${encodeURIComponent(name)}`;
  const base = placeOf(account, name);
  const namespace = useGet<Namespace>(path);
  const [chosen, setTab] = useSearch("tab", "customers");
  const tab = chosen === "usage" ? "usage" : "customers";
  const [isDeleting, setDeleting] = useState(false);
  const refusal = useRefusal();
  const place = { account_id: account, namespace_name: name };
  return (
    <Page
      title={name}
      up={{ name: "Dispatch", path: `/${account}/dispatch` }}
      about={namespace.data && plural(namespace.data.script_count, "customer")}
      actions={
        <Menu
          label="More"
          items={[
            {
              label: "Delete the namespace",
              icon: "trash",
              kind: "bad",
              refusal: refusal(`DELETE ${one}`),
              onSelect: () => setDeleting(true),
            },
          ]}
        />
      }
    >
      <div class="stack">
        {namespace.data && <Trust namespace={namespace.data} place={place} path={path} />}
        <Tabs label={`Parts of ${name}`} tabs={tabs} current={tab} onChange={setTab}>
          {tab === "usage" ? (
            <UsageTab place={place} path={path} base={base} />
          ) : (
            <CustomerList namespace={name} place={place} path={path} base={base} />
          )}
        </Tabs>
      </div>
      {isDeleting && (
        <Confirm
          title={`Delete ${name}`}
          submit="Delete"
          typed={name}
          call={{ op: `DELETE ${one}`, params: place }}
          done="The namespace was deleted"
          invalidates={[namespacesPath(account)]}
          onDone={() => navigate(`/${account}/dispatch`)}
          onClose={() => setDeleting(false)}
        >
          <p>The scripts of all its customers are deleted with it.</p>
        </Confirm>
      )}
    </Page>
  );
}

interface ListProps {
  namespace: string;
  place: Readonly<Record<string, string>>;
  path: string;
  /** The address of the namespace's screen. */
  base: string;
}

function CustomerList({ namespace, place, path, base }: ListProps) {
  const [tags, setTags] = useSearch("tags");
  const filter = tagFilter(tags);
  const [name, setName] = useSearch("name");
  const query = new URLSearchParams({ ...(name !== "" && { name }), ...(filter !== "" && { tags: filter }) });
  const rows = useRows<Customer>(`${path}/scripts${query.size === 0 ? "" : `?${query}`}`);
  const faultsOf = useFaults(path);
  const [isDeleting, setDeleting] = useState(false);
  const refusal = useRefusal();
  return (
    <>
      <div class="toolbar close">
        <Filter label="Filter customers by name" placeholder="Name" value={name} onChange={setName} />
        <Filter
          label="Filter customers by tags"
          placeholder="Tags: gold, -trial"
          value={tags}
          onChange={setTags}
        />
        <Button
          icon="trash"
          refusal={
            refusal(`DELETE ${one}/scripts`) ??
            (filter === ""
              ? "filter by a tag first"
              : name !== ""
                ? "deletes by tags only: empty the filter by name"
                : undefined)
          }
          onPress={() => setDeleting(true)}
        >
          Delete these
        </Button>
      </div>
      <Loaded
        of={rows.first}
        empty={
          query.size === 0 ? (
            <Empty icon="dispatch" title="No customer yet">
              <p>
                <code>wrangler deploy --dispatch-namespace {namespace}</code> uploads a customer's script.
              </p>
            </Empty>
          ) : (
            <Empty icon="search" title={name === "" ? "No customer has these tags" : "No customer matches"} />
          )
        }
      >
        {() => (
          <Grid
            label="Customers"
            columns={columnsOf(base, faultsOf)}
            rows={rows}
            keyOf={({ script }) => script.id}
            onOpen={({ script }) => navigate(`${base}/${encodeURIComponent(script.id)}`)}
          />
        )}
      </Loaded>
      {isDeleting && (
        <DeleteTagged
          place={place}
          path={path}
          filter={filter}
          onDone={rows.first.reload}
          onClose={() => setDeleting(false)}
        />
      )}
    </>
  );
}

interface TrustProps {
  namespace: Namespace;
  place: Readonly<Record<string, string>>;
  path: string;
}

function Trust({ namespace, place, path }: TrustProps) {
  const op = `PATCH ${one}`;
  const isOn = namespace.trusted_workers;
  const call = { op, params: place, body: { trusted_workers: !isOn } };
  const action = useAction({ done: "The namespace was changed", invalidates: [path], tellsFailure: true });
  return (
    <Card>
      <div class="setting">
        <Switch
          label="Trust the customers"
          hint="Scripts of trusted customers see request.cf, the data of the visitor’s connection."
          isOn={isOn}
          refusal={useRefusal()(op)}
          onChange={() => void action.run(call)}
        />
        <AsCode call={call} />
      </div>
    </Card>
  );
}
