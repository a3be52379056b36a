import { useState } from "preact/hooks";
import { count } from "../../core/format.ts";
import { useSearch } from "../../core/router.ts";
import { ActionForm, TextField } from "../../parts/form.tsx";
import { Card } from "../../parts/layout.tsx";
import { Results } from "../../parts/results.tsx";
import { databasePath, one, paramsOf, placeOf, type StatementResult } from "./database.ts";

/** Longer texts are not kept in the address. */
const addressMax = 4000;

/** An editor of SQL, and the results of its statements. A text in the address is not run before a person asks. */
export function QueryTab({ account, name }: { account: string; name: string }) {
  const [kept, setKept] = useSearch("sql");
  const [text, setText] = useState(kept);
  const [results, setResults] = useState<readonly StatementResult[] | undefined>(undefined);
  const change = (next: string): void => {
    setText(next);
    setKept(next.length <= addressMax ? next : "");
  };
  return (
    <div class="stack">
      <ActionForm<StatementResult[]>
        call={{ op: `POST ${one}/raw`, params: paramsOf(account, name), body: { sql: text } }}
        submit="Run"
        refusal={text.trim() === "" ? "write a statement first" : undefined}
        invalidates={[databasePath(account, name)]}
        onDone={setResults}
      >
        {(failure) => {
          const place = failure && placeOf(failure.message, text);
          return (
            <>
              <TextField
                label="SQL"
                value={text}
                onChange={change}
                error={place && failure.message}
                hint="Several statements are one transaction. Ctrl+Enter runs them."
                placeholder="select * from …"
                rows={8}
                isMono
                autofocus
              />
              {place && (
                <pre class="caret" aria-hidden="true">
                  {place.lines}
                </pre>
              )}
            </>
          );
        }}
      </ActionForm>
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
