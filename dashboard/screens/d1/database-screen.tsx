import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { bytes, plural } from "../../core/format.ts";
import { useRefusal } from "../../core/permissions.ts";
import { navigate, useSearch } from "../../core/router.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Page } from "../../parts/layout.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Loaded } from "../../parts/states.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { databasePath, one, paramsOf, type Database } from "./database.ts";
import { QueryTab } from "./query.tsx";
import { TablesTab } from "./tables.tsx";
import { TimeTravel } from "./time-travel.tsx";
import { Transfers } from "./transfers.tsx";

const tabs = [
  { key: "query", name: "Query" },
  { key: "tables", name: "Tables" },
  { key: "time", name: "Time travel" },
  { key: "transfers", name: "Import and export" },
] as const;
type Tab = (typeof tabs)[number]["key"];

/** One database: queries, its tables, its earlier states, and its transfers. */
export default function DatabaseScreen({ account, params }: ScreenProps) {
  const name = params["database"]!;
  const path = databasePath(account, name);
  const database = useGet<Database>(path);
  const [chosen, setTab] = useSearch("tab", "query");
  const tab: Tab = tabs.find(({ key }) => key === chosen)?.key ?? "query";
  const [isDeleting, setDeleting] = useState(false);
  const refusal = useRefusal()(`DELETE ${one}`);
  const props = { account, name };
  return (
    <Page
      title={database.data?.name ?? name}
      up={{ name: "D1 databases", path: `/${account}/d1` }}
      about={database.data && aboutOf(database.data)}
      actions={
        <Menu
          label="More"
          items={[
            {
              label: "Delete the database",
              icon: "trash",
              kind: "bad",
              refusal,
              onSelect: () => setDeleting(true),
            },
          ]}
        />
      }
    >
      <Loaded of={database}>
        {({ uuid, created_at }) => (
          <Tabs label={`Parts of ${name}`} tabs={tabs} current={tab} onChange={setTab}>
            {tab === "query" && <QueryTab {...props} />}
            {tab === "tables" && <TablesTab {...props} />}
            {tab === "time" && <TimeTravel {...props} id={uuid} createdAt={Date.parse(created_at)} />}
            {tab === "transfers" && <Transfers {...props} />}
          </Tabs>
        )}
      </Loaded>
      {isDeleting && (
        <Confirm
          title={`Delete ${name}`}
          submit="Delete"
          typed={name}
          call={{ op: `DELETE ${one}`, params: paramsOf(account, name) }}
          done="The database was deleted"
          invalidates={[`/accounts/${account}/d1/database`]}
          onDone={() => navigate(`/${account}/d1`)}
          onClose={() => setDeleting(false)}
        >
          <p>Its tables are deleted with it. Scripts that are bound to it get errors.</p>
        </Confirm>
      )}
    </Page>
  );
}

const aboutOf = ({ num_tables = 0, file_size = 0, running_in_region: region }: Database): string =>
  [plural(num_tables, "table"), bytes(file_size), region].filter(Boolean).join(" · ");
