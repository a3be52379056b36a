import { useState } from "preact/hooks";
import { useAsync } from "../../core/async.ts";
import { get } from "../../core/client.ts";
import { useRefusal } from "../../core/permissions.ts";
import { Button } from "../../parts/button.tsx";
import { Card, Copyable, Notice } from "../../parts/layout.tsx";
import { Restore } from "../../parts/restore.tsx";
import { Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { databasePath, one, paramsOf } from "./database.ts";

interface Kept {
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

/** The bookmarks of the current state and of some earlier times, or the server's reason why a time has none. */
async function readKept(path: string, signal: AbortSignal): Promise<Kept[]> {
  const bookmarkOf = async (query: string): Promise<string> =>
    (await get<{ bookmark: string }>(`${path}/time_travel/bookmark${query}`, signal)).result.bookmark;
  const now = { label: "now", bookmark: await bookmarkOf(""), fault: undefined };
  const earlier = spans.map(async ([label, ms]): Promise<Kept> => {
    const time = new Date(Date.now() - ms).toISOString();
    try {
      return {
        label,
        bookmark: await bookmarkOf(`?timestamp=${encodeURIComponent(time)}`),
        fault: undefined,
      };
    } catch (error) {
      return { label, bookmark: undefined, fault: (error as Error).message };
    }
  });
  return [now, ...(await Promise.all(earlier))];
}

/** The reason, if it is the same for all earlier times: the server keeps no earlier states. */
function commonFault([, ...earlier]: readonly Kept[]): string | undefined {
  const [first] = earlier;
  return earlier.every(({ fault }) => fault === first?.fault) ? first?.fault : undefined;
}

/** Earlier states of a database: their bookmarks, and the way back to one. */
export function TimeTravel({ account, name }: { account: string; name: string }) {
  const path = databasePath(account, name);
  const [turn, setTurn] = useState(0);
  const kept = useAsync(`${path} ${turn}`, async (signal) => readKept(path, signal));
  const refusal = useRefusal()(op);
  return (
    <Restore
      noun="database"
      name={name}
      callOf={(moment) => ({ op, params: paramsOf(account, name), query: moment })}
      invalidates={[path]}
      onRestored={() => setTurn(turn + 1)}
    >
      {(ask) => (
        <Loaded of={kept} rows={5}>
          {(list) => {
            const common = commonFault(list);
            return (
              <Card title="Bookmarks">
                {common !== undefined && <Notice tone="warn">{common}</Notice>}
                <Table
                  label="Bookmarks"
                  rows={common === undefined ? list : list.slice(0, 1)}
                  keyOf={({ label }) => label}
                  columns={[
                    { title: "State", cell: ({ label }) => label },
                    {
                      title: "Bookmark",
                      isWide: true,
                      cell: ({ bookmark, fault }) =>
                        bookmark === undefined ? (
                          <span class="faint">{fault}</span>
                        ) : (
                          <Copyable text={bookmark} />
                        ),
                    },
                  ]}
                  actions={({ label, bookmark }) =>
                    bookmark !== undefined &&
                    label !== "now" && (
                      <Button refusal={refusal} onPress={() => ask({ bookmark })}>
                        Restore
                      </Button>
                    )
                  }
                />
              </Card>
            );
          }}
        </Loaded>
      )}
    </Restore>
  );
}
