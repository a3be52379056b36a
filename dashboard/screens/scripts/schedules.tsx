import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { onlyAt } from "../../core/client.ts";
import { count } from "../../core/format.ts";
import { ActionForm, TextField } from "../../parts/form.tsx";
import { Card, State, Time } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import type { ScriptPlace } from "./script.ts";

interface TabProps {
  place: ScriptPlace;
}
interface Schedule {
  cron: string;
  modified_on: string;
  missed_runs: number;
  last_missed_on: string | null;
}

/** The cron schedules of a script. */
export function Schedules({ place }: TabProps) {
  const path = `${place.path}/schedules`;
  const schedules = useGet<{ schedules: Schedule[] }>(path);
  // The state that the person edits: what is read meanwhile does not replace their lines.
  const [edited, setEdited] = useState<Edited | undefined>(undefined);
  const read: Edited = { list: schedules.data?.schedules ?? [], etag: schedules.etag };
  const shown = edited ?? read;
  return (
    <Loaded of={schedules}>
      {({ schedules: list }) => (
        <div class="stack">
          {list.length > 0 && (
            <Table
              label="Schedules"
              rows={list}
              keyOf={({ cron }) => cron}
              columns={[
                { title: "Schedule", isWide: true, cell: ({ cron }) => <code>{cron}</code> },
                {
                  title: "Missed",
                  cell: ({ missed_runs, last_missed_on }) =>
                    missed_runs === 0 || last_missed_on === null ? (
                      <span class="faint">none</span>
                    ) : (
                      <State tone="warn">
                        {count(missed_runs)}, the last <Time at={last_missed_on} />
                      </State>
                    ),
                },
                { title: "Changed", cell: ({ modified_on }) => <Time at={modified_on} /> },
              ]}
            />
          )}
          <Lines
            key={shown.list.map(({ cron }) => cron).join("\n")}
            place={place}
            list={shown.list}
            etag={shown.etag}
            onEdit={() => setEdited(shown)}
            onDone={() => setEdited(undefined)}
            onTakeTheirs={() => {
              setEdited(undefined);
              schedules.reload();
            }}
            path={path}
          />
        </div>
      )}
    </Loaded>
  );
}

interface Edited {
  list: readonly Schedule[];
  etag: string | undefined;
}

interface LinesProps extends TabProps, Edited {
  onEdit: () => void;
  onDone: () => void;
  onTakeTheirs: () => void;
  path: string;
}

function Lines({ place, list, etag, onEdit, onDone, onTakeTheirs, path }: LinesProps) {
  const before = list.map(({ cron }) => cron).join("\n");
  const [text, setText] = useState(before);
  const crons = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const overwrite = {
    op: `PUT ${place.one}/schedules`,
    params: place.params,
    body: crons.map((cron) => ({ cron })),
  };
  return (
    <Card>
      <ActionForm
        call={onlyAt(etag, overwrite)}
        conflict={{ onTakeTheirs, overwrite }}
        submit="Save"
        done="The schedules were saved"
        refusal={text === before ? "nothing is changed" : undefined}
        invalidates={[path]}
        onDone={onDone}
      >
        {() => (
          <TextField
            label="Schedules"
            value={text}
            onChange={(value) => {
              onEdit();
              setText(value);
            }}
            rows={4}
            isMono
            hint="One in each line, in UTC: minute, hour, day of the month, month, day of the week. 0 6 * * * is six o'clock each day."
          />
        )}
      </ActionForm>
    </Card>
  );
}
