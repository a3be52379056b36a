import { Code } from "../../code/as-code.tsx";
import { useAsync } from "../../core/async.ts";
import { perform } from "../../core/client.ts";
import { useRefusal } from "../../core/permissions.ts";
import { setSearch, useSearch } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { Card, Notice } from "../../parts/layout.tsx";
import type { Cell } from "../../parts/cell.ts";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { one, paramsOf, quoted, type ColumnInfo, type StatementResult } from "./database.ts";

/** A table, view, index or trigger, with the statement that makes it. */
export interface Entry {
  type: string;
  name: string;
  table: string;
  sql: string;
}
const isOwn = "name not like 'sqlite\\_%' escape '\\' and name not like '\\_cf\\_%' escape '\\'";
/** One batch, so that the server sees at once that both only read. */
const schema = [
  `select type, name, tbl_name, sql from sqlite_schema where ${isOwn} and sql is not null order by name`,
  `select s.name, c.name, c.type, c."notnull", c.dflt_value, c.pk from sqlite_schema s, pragma_table_info(s.name) c where s.type in ('table', 'view') and s.${isOwn.replaceAll(" name", " s.name")} order by s.name, c.cid`,
].map((sql) => ({ sql }));

const op = `POST ${one}/raw`;

/** The tables, views, indexes and triggers of a database, and the columns of its tables. */
export async function readSchema(
  account: string,
  name: string,
  signal: AbortSignal,
): Promise<{ entries: Entry[]; columns: ColumnInfo[] }> {
  const call = { op, params: paramsOf(account, name), body: { batch: schema } };
  const { result } = await perform<StatementResult[]>(call, signal);
  const rows = (at: number): Cell[][] => result[at]?.results.rows ?? [];
  return {
    entries: rows(0).map(([type, entry, table, sql]) => ({ type, name: entry, table, sql }) as Entry),
    columns: rows(1).map(([table, column, type, notNull, byDefault, key]) => ({
      table: String(table),
      name: String(column),
      type: String(type),
      isNotNull: notNull === 1,
      byDefault: byDefault ?? null,
      isKey: Number(key) > 0,
    })),
  };
}

/** The tables and views of a database, with their columns, indexes and triggers. */
export function TablesTab({ account, name }: { account: string; name: string }) {
  const refusal = useRefusal()(op);
  const read = useAsync(refusal === undefined ? `${account} ${name}` : undefined, async (signal) =>
    readSchema(account, name, signal),
  );
  const [chosen, setChosen] = useSearch("table");
  if (refusal !== undefined)
    return <Notice tone="warn">The schema is read by a query, which {refusal}.</Notice>;
  return (
    <Loaded of={read}>
      {({ entries, columns }) => {
        const tables = entries.filter(({ type }) => type === "table" || type === "view");
        const shown = tables.find((each) => each.name === chosen) ?? tables[0];
        if (shown === undefined)
          return (
            <Empty icon="database" title="No table yet">
              <p>
                <code>create table</code> in the query editor makes one, or{" "}
                <code>wrangler d1 migrations apply {name} --remote</code>.
              </p>
            </Empty>
          );
        return (
          <div class="explorer">
            <nav class="operations" aria-label="Tables">
              {tables.map((each) => (
                <button
                  key={each.name}
                  type="button"
                  aria-current={each === shown ? "true" : undefined}
                  onClick={() => setChosen(each.name, false)}
                >
                  <span>
                    {each.name} {each.type === "view" && <small>view</small>}
                  </span>
                </button>
              ))}
            </nav>
            <OneTable
              entry={shown}
              columns={columns.filter(({ table }) => table === shown.name)}
              others={entries.filter((each) => each.table === shown.name && each !== shown)}
            />
          </div>
        );
      }}
    </Loaded>
  );
}

interface OneTableProps {
  entry: Entry;
  columns: readonly ColumnInfo[];
  others: readonly Entry[];
}

/** A statement that reads the rows of a table. */
export const rowsOf = (table: string): string => `select * from ${quoted(table)} limit 100;`;

const OneTable = ({ entry, columns, others }: OneTableProps) => (
  <div class="stack">
    <Card
      title={entry.name}
      actions={
        <Button onPress={() => setSearch({ tab: "", sql: rowsOf(entry.name) }, false)}>Query its rows</Button>
      }
    >
      <Table
        label={`Columns of ${entry.name}`}
        rows={columns}
        keyOf={(column) => column.name}
        columns={[
          { title: "Column", isWide: true, cell: (column) => <code>{column.name}</code> },
          { title: "Type", cell: ({ type }) => type || "any" },
          {
            title: "Rules",
            cell: ({ isKey, isNotNull }) =>
              [isKey && "primary key", isNotNull && "not null"].filter(Boolean).join(", ") || "–",
          },
          {
            title: "Default",
            isExtra: true,
            cell: ({ byDefault }) => (byDefault === null ? "–" : <code>{String(byDefault)}</code>),
          },
        ]}
      />
    </Card>
    <Code text={`${[entry, ...others].map(({ sql }) => sql).join(";\n")};`} label="Schema" />
  </div>
);
