import { useState } from "preact/hooks";
import { useAsync } from "../../core/async.ts";
import { get } from "../../core/client.ts";
import { timeOf } from "../../core/format.ts";
import { useRefusal } from "../../core/permissions.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { TextField, useForm } from "../../parts/form.tsx";
import { Card, Copyable, Notice } from "../../parts/layout.tsx";
import { Bars, Failure } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { databasePath, one, paramsOf } from "./database.ts";

interface Moment {
  label: string;
  bookmark: string | undefined;
  /** The reason why there is no bookmark. */
  fault: string | undefined;
}

const op = `POST ${one}/time_travel/restore`;
const minuteMs = 60_000;
const spans = [
  ["5 minutes ago", 5 * minuteMs],
  ["1 hour ago", 60 * minuteMs],
  ["1 day ago", 24 * 60 * minuteMs],
  ["7 days ago", 7 * 24 * 60 * minuteMs],
] as const;

/** The present bookmark and those of some times. A time that is not kept has the server's reason. */
async function readMoments(path: string, chosen: string, signal: AbortSignal): Promise<Moment[]> {
  const now = Date.now();
  const at = (ms: number): string => `?timestamp=${encodeURIComponent(new Date(ms).toISOString())}`;
  const wanted: (readonly [string, string])[] = [
    ...(chosen === "" ? [] : [[timeOf(chosen), at(Date.parse(chosen))] as const]),
    ...spans.map(([label, ms]) => [label, at(now - ms)] as const),
  ];
  const { result } = await get<{ bookmark: string }>(`${path}/time_travel/bookmark`, signal);
  const earlier = wanted.map(async ([label, query]): Promise<Moment> => {
    try {
      const found = await get<{ bookmark: string }>(`${path}/time_travel/bookmark${query}`, signal);
      return { label, bookmark: found.result.bookmark, fault: undefined };
    } catch (error) {
      return { label, bookmark: undefined, fault: (error as Error).message };
    }
  });
  return [{ label: "now", bookmark: result.bookmark, fault: undefined }, ...(await Promise.all(earlier))];
}

/** Earlier states of a database: their bookmarks, and the way back to one. */
export function TimeTravel({ account, name }: { account: string; name: string }) {
  const path = databasePath(account, name);
  const { values, field } = useForm({ time: "", bookmark: "" });
  const isTime = !Number.isNaN(Date.parse(values.time));
  const [turn, setTurn] = useState(0);
  const moments = useAsync(`${path} ${isTime ? values.time : ""} ${turn}`, async (signal) =>
    readMoments(path, isTime ? values.time : "", signal),
  );
  const [asked, setAsked] = useState<string | undefined>(undefined);
  const [undo, setUndo] = useState<string | undefined>(undefined);
  const refusal = useRefusal()(op);
  const faults = new Set(moments.data?.flatMap(({ fault }) => fault ?? []));
  // Without kept states, each time has the same reason.
  const [only] =
    faults.size === 1 && moments.data?.filter(({ fault }) => fault).length === moments.data!.length - 1
      ? faults
      : [];
  return (
    <div class="stack">
      {undo !== undefined && (
        <Notice tone="ok" actions={<Button onPress={() => setAsked(undo)}>Undo</Button>}>
          The database was restored. The state before is the bookmark <Copyable text={undo} />
        </Notice>
      )}
      {only !== undefined && <Notice tone="warn">{only}</Notice>}
      <div class="form-row">
        <TextField
          label="A time"
          type="datetime-local"
          {...field("time")}
          hint="In the time zone of this browser"
        />
        <TextField label="A bookmark" {...field("bookmark")} isMono />
        <div class="field-action">
          <Button
            refusal={refusal ?? (values.bookmark === "" ? "give it a bookmark" : undefined)}
            onPress={() => setAsked(values.bookmark.trim())}
          >
            Restore the bookmark
          </Button>
        </div>
      </div>
      <Card title="Bookmarks">
        {moments.failure !== undefined ? (
          <Failure failure={moments.failure} onRetry={moments.reload} />
        ) : moments.data === undefined ? (
          <Bars rows={5} />
        ) : (
          <Table
            label="Bookmarks"
            rows={moments.data}
            keyOf={({ label }) => label}
            columns={[
              { title: "State", cell: ({ label }) => label },
              {
                title: "Bookmark",
                isWide: true,
                cell: ({ bookmark, fault }) =>
                  bookmark === undefined ? (
                    <span class="faint">{only === undefined ? fault : "not kept"}</span>
                  ) : (
                    <Copyable text={bookmark} />
                  ),
              },
            ]}
            actions={({ label, bookmark }) =>
              bookmark !== undefined &&
              label !== "now" && (
                <Button refusal={refusal} onPress={() => setAsked(bookmark)}>
                  Restore
                </Button>
              )
            }
          />
        )}
      </Card>
      {asked !== undefined && (
        <Confirm<{ previous_bookmark: string }>
          title={`Restore ${name}`}
          submit="Restore"
          typed={name}
          call={{ op, params: paramsOf(account, name), query: { bookmark: asked } }}
          done="The database was restored"
          invalidates={[path]}
          onDone={({ previous_bookmark }) => {
            setUndo(previous_bookmark);
            setTurn(turn + 1);
          }}
          onClose={() => setAsked(undefined)}
        >
          <p>
            The database gets the state of the bookmark <code>{asked}</code>. Later writes are gone from it,
            and queries in progress fail. The bookmark of the present state undoes it.
          </p>
        </Confirm>
      )}
    </div>
  );
}
