import { useState } from "preact/hooks";
import { count } from "../../core/format.ts";
import { Card } from "../../parts/layout.tsx";
import { Results } from "../../parts/results.tsx";
import { SqlForm } from "../../parts/sql-form.tsx";
import { databasePath, one, paramsOf, type StatementResult } from "./database.ts";

/** An editor of SQL, and the results of its statements. */
export function QueryTab({ account, name }: { account: string; name: string }) {
  const [results, setResults] = useState<readonly StatementResult[] | undefined>(undefined);
  return (
    <div class="stack">
      <SqlForm<StatementResult[]>
        callOf={(sql) => ({ op: `POST ${one}/raw`, params: paramsOf(account, name), body: { sql } })}
        hint="Several statements are one transaction."
        invalidates={[databasePath(account, name)]}
        onDone={setResults}
      />
      {results?.map((result, index) => (
        <Result key={index} result={result} place={index + 1} of={results.length} />
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
