import { useState } from "preact/hooks";
import type { Call } from "../core/client.ts";
import { useSearch } from "../core/router.ts";
import { placeOf } from "../core/sql-place.ts";
import { ActionForm, TextField } from "./form.tsx";

/** Longer texts are not written to the URL. */
const addressMax = 4000;

interface SqlFormProps<R> {
  /** The call that runs a text. */
  callOf: (sql: string) => Call;
  hint: string;
  invalidates?: readonly string[];
  /** `sql` is the text that has run. */
  onDone: (result: R, sql: string) => void;
}

/** An SQL editor. A statement from the URL runs only when a person asks for it. Syntax errors are marked in the text. */
export function SqlForm<R>({ callOf, hint, invalidates = [], onDone }: SqlFormProps<R>) {
  const [kept, setKept] = useSearch("sql");
  const [text, setText] = useState(kept);
  const change = (next: string): void => {
    setText(next);
    setKept(next.length <= addressMax ? next : "");
  };
  return (
    <ActionForm<R>
      call={callOf(text)}
      submit="Run"
      refusal={text.trim() === "" ? "write a statement first" : undefined}
      invalidates={invalidates}
      onDone={(result) => onDone(result, text)}
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
              hint={`${hint} Ctrl+Enter runs it.`}
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
  );
}
