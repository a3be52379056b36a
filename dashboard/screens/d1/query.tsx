import { useState } from "preact/hooks";
import { useAsync } from "../../core/async.ts";
import { count } from "../../core/format.ts";
import { useRefusal } from "../../core/permissions.ts";
import { setSearch } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/layout.tsx";
import { Results } from "../../parts/results.tsx";
import { SqlForm } from "../../parts/sql-form.tsx";
import { readSchema, rowsOf } from "./tables.tsx";
import { databasePath, one, paramsOf, type StatementResult } from "./database.ts";

const shownMax = 12;

/** An editor of SQL, and the results of its statements. */
export function QueryTab({ account, name }: { account: string; name: string }) {
  const [results, setResults] = useState<readonly StatementResult[] | undefined>(undefined);
  const [start, setStart] = useState("");
  return (
    <div class="stack">
      <SqlForm<StatementResult[]>
        key={start}
        callOf={(sql) => ({ op: `POST ${one}/raw`, params: paramsOf(account, name), body: { sql } })}
        hint="Several statements are one transaction."
        invalidates={[databasePath(account, name)]}
        onDone={setResults}
      />
      {results === undefined && (
        <Tables
          account={account}
          name={name}
          onChoose={(table) => {
            setSearch({ sql: rowsOf(table) });
            setStart(table);
          }}
        />
      )}
      {results?.map((result, index) => (
        <Result key={index} result={result} place={index + 1} of={results.length} />
      ))}
    </div>
  );
}

/** The tables as places to begin with, while there is no result. */
function Tables({
  account,
  name,
  onChoose,
}: {
  account: string;
  name: string;
  onChoose: (table: string) => void;
}) {
  const isAllowed = useRefusal()(`POST ${one}/raw`) === undefined;
  const read = useAsync(isAllowed ? `${account} ${name}` : undefined, async (signal) =>
    readSchema(account, name, signal),
  );
  const tables = (read.data?.entries ?? []).filter(({ type }) => type === "table" || type === "view");
  if (tables.length === 0) return null;
  return (
    <div class="row" role="group" aria-label="Tables">
      <span class="hint">Rows of</span>
      {tables.slice(0, shownMax).map(({ name: table }) => (
        <Button key={table} class="mono" onPress={() => onChoose(table)}>
          {table}
        </Button>
      ))}
    </div>
  );
}

function Result({ result, place, of }: { result: StatementResult; place: number; of: number }) {
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
        <Results label={`Rows of result ${place}`} columns={columns} rows={rows} />
      )}
    </Card>
  );
}
