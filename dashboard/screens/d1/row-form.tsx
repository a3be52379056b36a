import { useState } from "preact/hooks";
import { Code } from "../../code/as-code.tsx";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { ActionForm, Switch, TextField } from "../../parts/form.tsx";
import { Notice } from "../../parts/layout.tsx";
import { textOf, type Cell } from "../../parts/cell.ts";
import { toast } from "../../parts/toast.tsx";
import { databasePath, one, paramsOf, type ColumnInfo, type StatementResult } from "./database.ts";
import { deletionOf, typedOf, updateOf, type Row, type Statement, type Typed } from "./row.ts";

interface RowFormProps {
  account: string;
  name: string;
  table: string;
  columns: readonly ColumnInfo[];
  /** The columns of the result, in its order. */
  titles: readonly string[];
  row: readonly Cell[];
  onChanged: () => void;
  onClose: () => void;
}

const longMax = 60;

/** Changes the values of one row of a table, or deletes it. Bytes are shown, and stay. */
export function RowForm({ account, name, table, columns, titles, row, onChanged, onClose }: RowFormProps) {
  const [typed, setTyped] = useState<readonly Typed[]>(row.map(typedOf));
  const [isLost, setLost] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const of: Row = { table, columns: titles.flatMap((title) => columnOf(columns, title)), values: row };
  const isKnown = of.columns.length === row.length && of.columns.some(({ isKey }) => isKey);
  const set = (at: number, value: Typed): void => setTyped(typed.with(at, value));
  const callOf = (statement: Statement) => ({
    op: `POST ${one}/raw`,
    params: paramsOf(account, name),
    body: statement,
  });
  const settle = (done: string, [result]: StatementResult[]): void => {
    if (result?.meta.changes === 0) return setLost(true);
    toast(done);
    onClose();
    onChanged();
  };
  const update = isKnown ? updateOf(of, typed) : undefined;
  const shared = { invalidates: [databasePath(account, name)] };
  return (
    <>
      {isLost && (
        <div role="alert">
          <Notice tone="warn">
            The row has changed meanwhile, or is gone. Nothing was changed: run the query again.
          </Notice>
        </div>
      )}
      <ActionForm<StatementResult[]>
        {...shared}
        call={callOf(update ?? { sql: "", params: [] })}
        submit="Save"
        refusal={
          isKnown
            ? update === undefined
              ? "nothing is changed"
              : undefined
            : "the table has no primary key, so the row has no address"
        }
        onCancel={onClose}
        onDone={(results) => settle("The row was changed", results)}
      >
        {titles.map((title, at) => (
          <ValueField
            key={at}
            title={title}
            value={row[at]!}
            typed={typed[at]}
            isNullable={of.columns[at]?.isNotNull === false && !of.columns[at].isKey}
            isFixed={!isKnown}
            onChange={(value) => set(at, value)}
          />
        ))}
      </ActionForm>
      {isKnown && (
        <div class="row">
          <Button kind="bad" icon="trash" onPress={() => setDeleting(true)}>
            Delete the row
          </Button>
        </div>
      )}
      {isDeleting && (
        <Confirm<StatementResult[]>
          {...shared}
          title="Delete the row"
          submit="Delete"
          call={callOf(deletionOf(of))}
          onDone={(results) => settle("The row was deleted", results)}
          onClose={() => setDeleting(false)}
        >
          <p>It is deleted from {table}.</p>
        </Confirm>
      )}
    </>
  );
}

const columnOf = (columns: readonly ColumnInfo[], title: string): ColumnInfo[] =>
  columns.filter(({ name }) => name === title).slice(0, 1);

interface ValueFieldProps {
  title: string;
  value: Cell;
  typed: Typed;
  isNullable: boolean;
  isFixed: boolean;
  onChange: (value: Typed) => void;
}

function ValueField({ title, value, typed, isNullable, isFixed, onChange }: ValueFieldProps) {
  if (typeof value === "object" && value !== null)
    return (
      <section class="value">
        <h3>{title}</h3>
        <Code text={textOf(value)} label={title} />
      </section>
    );
  const isLong = typed !== undefined && (typed.length > longMax || typed.includes("\n"));
  return (
    <>
      <TextField
        label={title}
        value={typed ?? ""}
        onChange={onChange}
        isMono
        isDisabled={isFixed || typed === undefined}
        {...(isLong && { rows: 6 })}
      />
      {isNullable && !isFixed && (
        <Switch
          label={`NULL for ${title}`}
          isOn={typed === undefined}
          onChange={(isNull) => onChange(isNull ? undefined : "")}
        />
      )}
    </>
  );
}
