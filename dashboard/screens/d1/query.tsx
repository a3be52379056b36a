import type { ComponentProps } from "preact";
import { useState } from "preact/hooks";
import { useAction } from "../../core/action.ts";
import { useAsync } from "../../core/async.ts";
import type { Call } from "../../core/client.ts";
import { count } from "../../core/format.ts";
import { useRefusal } from "../../core/permissions.ts";
import { setSearch } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/layout.tsx";
import { Results } from "../../parts/results.tsx";
import { SqlForm } from "../../parts/sql-form.tsx";
import { databasePath, one, paramsOf, type ColumnInfo, type StatementResult } from "./database.ts";
import { RowForm } from "./row-form.tsx";
import { readSchema, rowsOf, type Entry } from "./tables.tsx";

const shownMax = 12;

/** A text that has run, and its results. */
interface Ran {
  sql: string;
  results: readonly StatementResult[];
}

/** An editor of SQL, and the results of its statements. The rows of one table can be changed. */
export function QueryTab({ account, name }: { account: string; name: string }) {
  const [ran, setRan] = useState<Ran | undefined>(undefined);
  const [written, setWritten] = useState(0);
  const schema = useSchema(account, name);
  const invalidates = [databasePath(account, name)];
  const action = useAction({ tellsFailure: true, invalidates });
  const callOf = (sql: string): Call => ({
    op: `POST ${one}/raw`,
    params: paramsOf(account, name),
    body: { sql },
  });
  const run = async (sql: string): Promise<void> => {
    const answer = await action.run<StatementResult[]>(callOf(sql));
    if (answer !== undefined) setRan({ sql, results: answer.result });
  };
  const table = schema.tables.find(({ type, name: each }) => type === "table" && rowsOf(each) === ran?.sql);
  return (
    <div class="stack">
      <SqlForm<StatementResult[]>
        key={written}
        callOf={callOf}
        hint="Several statements are one transaction."
        invalidates={invalidates}
        onDone={(results, sql) => setRan({ sql, results })}
      />
      <Tables
        of={schema.tables}
        isBusy={action.isBusy}
        onChoose={(chosen) => {
          setSearch({ sql: rowsOf(chosen) });
          setWritten((each) => each + 1);
          void run(rowsOf(chosen));
        }}
      />
      {ran?.results.map((result, index) => (
        <Result
          key={index}
          result={result}
          place={index + 1}
          of={ran.results.length}
          form={
            table &&
            ((row, close) => (
              <RowForm
                account={account}
                name={name}
                table={table.name}
                columns={schema.columns.filter((column) => column.table === table.name)}
                titles={result.results.columns}
                row={row}
                onChanged={() => void run(ran.sql)}
                onClose={close}
              />
            ))
          }
        />
      ))}
    </div>
  );
}

/** The tables and views of a database, and their columns: none as long as they are not known. */
function useSchema(account: string, name: string): { tables: Entry[]; columns: ColumnInfo[] } {
  const isAllowed = useRefusal()(`POST ${one}/raw`) === undefined;
  const { data } = useAsync(isAllowed ? `${account} ${name}` : undefined, async (signal) =>
    readSchema(account, name, signal),
  );
  return {
    tables: (data?.entries ?? []).filter(({ type }) => type === "table" || type === "view"),
    columns: data?.columns ?? [],
  };
}

interface TablesProps {
  of: readonly Entry[];
  isBusy: boolean;
  onChoose: (table: string) => void;
}

/** The tables as places to begin with: a button runs a query of its rows. */
const Tables = ({ of: tables, isBusy, onChoose }: TablesProps) =>
  tables.length === 0 ? null : (
    <div class="row" role="group" aria-label="Tables">
      <span class="hint">Rows of</span>
      {tables.slice(0, shownMax).map(({ name }) => (
        <Button key={name} class="mono" isBusy={isBusy} onPress={() => onChoose(name)}>
          {name}
        </Button>
      ))}
    </div>
  );

interface ResultProps {
  result: StatementResult;
  place: number;
  of: number;
  form: ComponentProps<typeof Results>["form"];
}

function Result({ result, place, of, form }: ResultProps) {
  const { results, meta } = result;
  const { columns, rows } = results;
  const figures = [
    `${count(meta.rows_read)} read`,
    `${count(meta.rows_written)} written`,
    ...(meta.changes > 0 ? [`${count(meta.changes)} changed`] : []),
  ];
  return (
    <Card
      title={of === 1 ? "Result" : `Result ${place}`}
      actions={
        <span class="faint" role="status">
          {count(rows.length)} rows · {figures.join(" · ")}
        </span>
      }
    >
      {rows.length === 0 ? (
        <p class="faint">The statement returned no row.</p>
      ) : (
        <Results label={`Rows of result ${place}`} columns={columns} rows={rows} form={form} />
      )}
    </Card>
  );
}
