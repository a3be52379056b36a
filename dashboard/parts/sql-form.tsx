import { useState } from "preact/hooks";
import type { Call } from "../core/client.ts";
import { useSearch } from "../core/router.ts";
import { placeOf } from "../core/sql-place.ts";
import { ActionForm, TextField } from "./form.tsx";

/** Longer texts are not kept in the address. */
const addressMax = 4000;

interface SqlFormProps<R> {
  /** The call that runs a text. */
  callOf: (sql: string) => Call;
  hint: string;
  invalidates?: readonly string[];
  onDone: (result: R) => void;
}

/** An editor of SQL. A text in the address is not run before a person asks. A fault is marked at its place. */
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
      onDone={onDone}
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
