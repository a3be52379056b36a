import { useState } from "preact/hooks";
import { useAsync } from "../../core/async.ts";
import { get } from "../../core/client.ts";
import { exactTimeOf } from "../../core/format.ts";
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

interface Write {
  action: { description: string; time: string };
  actor: { email?: string; token_name?: string; type: string };
}

interface Place {
  account: string;
  name: string;
  id: string;
  createdAt: number;
}

const writesMax = 5;
const auditOp = "GET /accounts/{account_id}/logs/audit";

/** The last calls of the API that wrote to the database. The audit log notes the time before each runs. */
async function readWrites({ account, name, id, createdAt }: Place, signal: AbortSignal): Promise<Write[]> {
  const search = new URLSearchParams({
    since: new Date(createdAt).toISOString(),
    before: new Date(Date.now() + minuteMs).toISOString(),
    limit: String(writesMax),
    resource_product: "d1",
    "action_type.not": "view",
  });
  for (const type of ["query", "raw", "import", "restore"]) search.append("resource_type", type);
  for (const each of new Set([id, name])) search.append("resource_id", each);
  return (await get<Write[]>(`/accounts/${account}/logs/audit?${search}`, signal)).result;
}

/** The bookmarks of the current state, of the last writes and of some times, or the server's reason why a time has none. */
async function readKept(place: Place, seesWrites: boolean, signal: AbortSignal): Promise<Kept[]> {
  const path = databasePath(place.account, place.name);
  const bookmarkOf = async (query: string): Promise<string> =>
    (await get<{ bookmark: string }>(`${path}/time_travel/bookmark${query}`, signal)).result.bookmark;
  const now = { label: "now", bookmark: await bookmarkOf(""), fault: undefined };
  const writes = seesWrites ? await readWrites(place, signal) : [];
  const since = spans.filter(([, ms]) => Date.now() - ms > place.createdAt);
  const moments = [
    ...writes.map(({ action, actor }) => {
      const by = actor.email ?? actor.token_name ?? actor.type;
      return [
        `before a ${wordOf(action.description)} by ${by}, ${exactTimeOf(action.time)}`,
        action.time,
      ] as const;
    }),
    ...since.map(([label, ms]) => [label, new Date(Date.now() - ms).toISOString()] as const),
  ];
  const earlier = moments.map(async ([label, time]): Promise<Kept> => {
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

const wordOf = (description: string): string =>
  description.startsWith("Restore")
    ? "restore"
    : description.includes("mport")
      ? "part of an import"
      : "write";

/** The reason, if it is the same for all earlier times: the server keeps no earlier states. */
function commonFault([, ...earlier]: readonly Kept[]): string | undefined {
  const [first] = earlier;
  return earlier.every(({ fault }) => fault === first?.fault) ? first?.fault : undefined;
}

/** Earlier states of a database: their bookmarks, and the way back to one. */
export function TimeTravel(place: Place) {
  const { account, name } = place;
  const path = databasePath(account, name);
  const [turn, setTurn] = useState(0);
  const refusalOf = useRefusal();
  const refusal = refusalOf(op);
  const seesWrites = refusalOf(auditOp) === undefined;
  const kept = useAsync(`${path} ${turn}`, async (signal) => readKept(place, seesWrites, signal));
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
                  keyOf={({ label, bookmark }) => `${label} ${bookmark}`}
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
