import { useEffect, useRef, useState } from "preact/hooks";
import { asFailure, type ApiFailure } from "../../../core/client.ts";
import { count, plural, timeOf } from "../../../core/format.ts";
import { useSearch } from "../../../core/router.ts";
import { Button } from "../../../parts/button.tsx";
import { Dialog } from "../../../parts/dialog.tsx";
import { Choice, Filter } from "../../../parts/filter.tsx";
import { Facts, Page, State, Time } from "../../../parts/layout.tsx";
import { Bars, Empty, Failure } from "../../../parts/states.tsx";
import { Table } from "../../../parts/table.tsx";
import type { ScreenProps } from "../../../shell/route.ts";
import { Changes } from "./changes.tsx";
import { partOf, type Entry, type Log } from "./log.ts";
import { joined, nameOf, placeOf, titleOf, useNames } from "./words.ts";

const logs: { value: Log; label: string }[] = [
  { value: "account", label: "In this account" },
  { value: "user", label: "By you, everywhere" },
];
/** Live logs, SQL that selects, refused reads. */
const readChoices = [
  { value: "without", label: "Without reads" },
  { value: "with", label: "With reads" },
];
const spans = { "1": "Last day", "7": "Last 7 days", "30": "Last 30 days", "365": "Last year" } as const;
const dayMs = 86_400_000;

/** The changes in an account, each with its token or person and its time. */
export default function Audit({ account }: ScreenProps) {
  const [days, setDays] = useSearch("days", "7");
  const [openId, setOpenId] = useSearch("entry");
  const [resource, setResource] = useSearch("resource");
  const [filter, setFilter] = useSearch("filter");
  const [chosen, setLog] = useSearch("log", "account");
  const [reads, setReads] = useSearch("reads", "without");
  const log: Log = chosen === "user" ? "user" : "account";
  const { entries, failure, more, reload } = useEntries(
    { log, account, resource, withReads: reads === "with" },
    Number(days),
  );
  const names = useNames(account, entries ?? []);
  const shown = entries?.filter((entry) => matches(entry, filter));
  const isSearching = useSearchOlder(filter, entries, shown, more);
  const opened = entries?.find(({ id }) => id === openId);
  return (
    <Page
      title="Audit log"
      about="Changes by tokens, people and the platform itself. Changes of your own tokens are under “By you, everywhere”: they are yours, not the account's."
    >
      <div class="toolbar">
        <Filter
          label="Filter changes by resource, value, person or token"
          value={filter}
          onChange={setFilter}
        />
        <Choice label="Log" value={log} onChange={setLog} options={logs} />
        <Choice
          label="Time"
          value={days}
          onChange={setDays}
          options={Object.entries(spans).map(([value, label]) => ({ value, label }))}
        />
        <Choice label="Reads" value={reads} onChange={setReads} options={readChoices} />
        <Button icon="refresh" kind="quiet" label="Read again" onPress={reload} />
        {resource !== "" && (
          <Button icon="close" onPress={() => setResource("")}>
            Only changes of {resource.slice(0, 8)}…
          </Button>
        )}
      </div>
      {failure !== undefined ? (
        <Failure failure={failure} onRetry={reload} />
      ) : shown === undefined || (shown.length === 0 && isSearching) ? (
        <Bars rows={8} />
      ) : shown.length === 0 && more === undefined ? (
        <Empty icon="audit" title={filter === "" ? "No change in this time" : "No change matches"} />
      ) : (
        <div class="stack">
          <Table
            label="Changes"
            rows={shown}
            keyOf={({ id }) => id}
            columns={[
              { title: "When", cell: ({ action }) => <Time at={action.time} /> },
              {
                title: "What",
                isWide: true,
                cell: (entry) => (
                  <>
                    <button type="button" class="link" onClick={() => setOpenId(entry.id, false)}>
                      {titleOf(entry)}
                    </button>
                    <br />
                    <small>
                      {joined(nameOf(entry.resource), placeOf(entry.raw, names), entry.zone?.name)}
                    </small>
                  </>
                ),
              },
              {
                title: "By",
                isExtra: true,
                cell: ({ actor }) => <Author actor={actor} />,
              },
              {
                title: "Result",
                cell: ({ action }) => (
                  <State tone={action.result === "success" ? "ok" : "bad"}>{action.result}</State>
                ),
              },
            ]}
          />
          {more !== undefined && !isSearching && (
            <div class="row center">
              {filter !== "" && (
                <span class="faint">{`${plural(shown.length, "match", "matches")} in the ${count(entries!.length)} newest changes.`}</span>
              )}
              <Button onPress={more}>Older ones</Button>
            </div>
          )}
        </div>
      )}
      {opened !== undefined && <EntryPanel entry={opened} names={names} onClose={() => setOpenId("")} />}
    </Page>
  );
}

const Author = ({ actor }: { actor: Entry["actor"] }) => (
  <>
    {actor.email ?? actor.type}
    {actor.token_name !== undefined && (
      <>
        <br />
        <small>{actor.token_name}</small>
      </>
    )}
  </>
);

/** Whether an entry has all words, anywhere. */
function matches(entry: Entry, filter: string): boolean {
  const text = JSON.stringify(entry).toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

const matchesWanted = 20;
const searchedMax = 10_000;

/** Reads older entries while a filter has few matches. Returns whether it goes on. */
function useSearchOlder(
  filter: string,
  entries: readonly Entry[] | undefined,
  shown: readonly Entry[] | undefined,
  more: (() => void) | undefined,
): boolean {
  const goesOn =
    filter !== "" &&
    more !== undefined &&
    entries !== undefined &&
    shown!.length < matchesWanted &&
    entries.length < searchedMax;
  useEffect(() => {
    if (goesOn) more();
  }, [goesOn, entries]);
  return goesOn;
}

const firstPage = 100;
const furtherPage = 1000;

interface Listed {
  log: Log;
  account: string;
  resource: string;
  withReads: boolean;
}

/** The newest entries of some days, of all resources or of one, and the function that reads older ones. */
function useEntries({ log, account, resource, withReads }: Listed, days: number) {
  const [entries, setEntries] = useState<Entry[] | undefined>(undefined);
  const [cursor, setCursor] = useState<string | undefined>(undefined);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const [version, setVersion] = useState(0);
  const turn = useRef(0);
  const read = (from: string | undefined, before: readonly Entry[]): void => {
    const own = ++turn.current;
    const since = new Date(Date.now() - days * dayMs).toISOString();
    const limit = from === undefined ? firstPage : furtherPage;
    partOf(log, account, { since, limit, cursor: from, resource, withReads }).then(
      ({ entries: read, cursor: end }) => {
        if (own !== turn.current) return;
        setFailure(undefined);
        setEntries([...before, ...read]);
        setCursor(end);
      },
      (error: unknown) => setFailure(asFailure(error)),
    );
  };
  useEffect(() => {
    setEntries(undefined);
    setCursor(undefined);
    read(undefined, []);
  }, [log, account, days, resource, withReads, version]);
  return {
    entries,
    failure,
    more: cursor === undefined ? undefined : () => read(cursor, entries ?? []),
    reload: () => setVersion((each) => each + 1),
  };
}

interface PanelProps {
  entry: Entry;
  names: ReadonlyMap<string, string>;
  onClose: () => void;
}

function EntryPanel({ entry, names, onClose }: PanelProps) {
  const { action, actor, raw, resource, zone } = entry;
  return (
    <Dialog title={titleOf(entry)} kind="side" onClose={onClose}>
      <Facts
        facts={[
          ["When", timeOf(action.time)],
          ["By", [actor.email, actor.token_name].filter(Boolean).join(", ") || actor.type],
          ["From", actor.ip_address ?? "–"],
          ["Call", <code key="call">{`${raw.method ?? ""} ${raw.uri ?? ""}`}</code>],
          ["Answer", String(raw.status_code ?? "–")],
          ["Resource", <code key="resource">{names.get(resource.id ?? "") ?? resource.id ?? "–"}</code>],
          ["Zone", zone?.name ?? "–"],
          ["Client", raw.user_agent ?? "–"],
        ]}
      />
      <Changes before={resource.before} after={resource.request} />
    </Dialog>
  );
}
