import { useState } from "preact/hooks";
import { count } from "../../core/format.ts";
import { useRefusal } from "../../core/permissions.ts";
import { navigate, useSearch } from "../../core/router.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Card, Copyable, Notice, Page } from "../../parts/layout.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Restore } from "../../parts/restore.tsx";
import type { Cell } from "../../parts/cell.ts";
import { Results } from "../../parts/results.tsx";
import { SqlForm } from "../../parts/sql-form.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { namespacesPath, one } from "./namespace.ts";

const tabs = [
  { key: "query", name: "Query" },
  { key: "restore", name: "Restore" },
] as const;
type Tab = (typeof tabs)[number]["key"];

/** One object: its stored data (read without running its code), its earlier states, and its deletion. */
export default function ObjectScreen({ account, params }: ScreenProps) {
  const { namespace = "", object = "" } = params;
  const [chosen, setTab] = useSearch("tab", "query");
  const tab: Tab = tabs.find(({ key }) => key === chosen)?.key ?? "query";
  const [isDeleting, setDeleting] = useState(false);
  const refusal = useRefusal()(`DELETE ${one}`);
  const place = { account_id: account, namespace_id: namespace, object_id: object };
  const up = `/${account}/objects/${namespace}`;
  const name = object.slice(0, 8);
  return (
    <Page
      title={`Object ${name}`}
      up={{ name: "Objects", path: up }}
      about={<Copyable text={object} />}
      actions={
        <Menu
          label="More"
          items={[
            {
              label: "Delete the object",
              icon: "trash",
              kind: "bad",
              refusal,
              onSelect: () => setDeleting(true),
            },
          ]}
        />
      }
    >
      <Tabs label={`Parts of object ${name}`} tabs={tabs} current={tab} onChange={setTab}>
        {tab === "query" && <Query place={place} />}
        {tab === "restore" && (
          <Restore
            noun="object"
            name={name}
            callOf={(moment) => ({ op: `POST ${one}/restore`, params: place, body: moment })}
            invalidates={[namespacesPath(account)]}
          />
        )}
      </Tabs>
      {isDeleting && (
        <Confirm
          title={`Delete object ${name}`}
          submit="Delete"
          typed={name}
          call={{ op: `DELETE ${one}`, params: place }}
          done="The object was deleted"
          invalidates={[namespacesPath(account)]}
          onDone={() => navigate(up)}
          onClose={() => setDeleting(false)}
        >
          <p>
            Its data and its alarm are deleted. Its code does not run. The same id is a new object afterwards.
          </p>
        </Confirm>
      )}
    </Page>
  );
}

interface QueryResult {
  columns: string[];
  rows: Cell[][];
  truncated: boolean;
}

function Query({ place }: { place: Readonly<Record<string, string>> }) {
  const [result, setResult] = useState<QueryResult | undefined>(undefined);
  return (
    <div class="stack">
      <SqlForm<QueryResult>
        callOf={(sql) => ({ op: `POST ${one}/query`, params: place, body: { sql } })}
        hint="One SELECT, in the stored data. The object's code does not run."
        onDone={setResult}
      />
      {result?.truncated && (
        <Notice tone="warn">The result is longer than the limit. Rows are missing.</Notice>
      )}
      {result && (
        <Card
          title="Result"
          actions={
            <span class="faint" role="status">
              {count(result.rows.length)} rows
            </span>
          }
        >
          {result.rows.length === 0 ? (
            <p class="faint">The statement returned no row.</p>
          ) : (
            <Results label="Rows of the result" columns={result.columns} rows={result.rows} />
          )}
        </Card>
      )}
    </div>
  );
}
