import { useEffect, useState } from "preact/hooks";
import { ApiFailure, get } from "../../../core/client.ts";
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

interface Entry {
  id: string;
  action: { description: string; result: "success" | "failure"; time: string; type: string };
  actor: { email?: string; token_id?: string; token_name?: string; ip_address?: string; type: string };
  raw: { method?: string; uri?: string; status_code?: number; cf_ray_id?: string; user_agent?: string };
  resource: { id?: string; product: string; type: string; request?: unknown; before?: unknown };
  zone?: { id?: string; name?: string };
}

const spans = { "1": "Last day", "7": "Last 7 days", "30": "Last 30 days", "365": "Last year" } as const;
const dayMs = 86_400_000;

/** Which token or person changed what, and when. */
export default function Audit({ account }: ScreenProps) {
  const [days, setDays] = useSearch("days", "7");
  const [openId, setOpenId] = useSearch("entry");
  const { entries, failure, more, reload } = useEntries(account, Number(days));
  const [filter, setFilter] = useSearch("filter");
  const shown = entries?.filter((entry) => matches(entry, filter));
  const opened = entries?.find(({ id }) => id === openId);
  return (
    <Page title="Audit log" about="Changes by tokens, people and the platform itself.">
      <div class="toolbar">
        <Filter
          label="Filter changes by resource, value, person or token"
          value={filter}
          onChange={setFilter}
        />
        <Choice
          label="Time"
          value={days}
          onChange={setDays}
          options={Object.entries(spans).map(([value, label]) => ({ value, label }))}
        />
        <Button icon="refresh" kind="quiet" label="Read again" onPress={reload} />
      </div>
      {failure !== undefined ? (
        <Failure failure={failure} onRetry={reload} />
      ) : shown === undefined ? (
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
                cell: ({ id, action, resource, zone }) => (
                  <>
                    <button type="button" class="link" onClick={() => setOpenId(id, false)}>
                      {action.description}
                    </button>
                    <br />
                    <small>{[nameOf(resource), zone?.name, resource.type].filter(Boolean).join(" · ")}</small>
                  </>
                ),
              },
              {
                title: "By",
                isExtra: true,
                cell: ({ actor }) => actor.email ?? actor.token_name ?? actor.type,
              },
              {
                title: "Result",
                cell: ({ action }) => (
                  <State tone={action.result === "success" ? "ok" : "bad"}>{action.result}</State>
                ),
              },
            ]}
          />
          {more !== undefined && (
            <div class="row center">
              {filter !== "" && (
                <span class="faint">{`${plural(shown.length, "match", "matches")} in the ${count(entries!.length)} newest changes.`}</span>
              )}
              <Button onPress={more}>Older ones</Button>
            </div>
          )}
        </div>
      )}
      {opened !== undefined && <EntryPanel entry={opened} onClose={() => setOpenId("")} />}
    </Page>
  );
}

/** The name of what was changed, as the call or the resource before it has it. */
function nameOf({ request, before }: Entry["resource"]): string | undefined {
  const named = [request, before].map((each) => (each as { name?: unknown } | null | undefined)?.name);
  return named.find((name): name is string => typeof name === "string");
}

/** Whether an entry has all words, anywhere. */
function matches(entry: Entry, filter: string): boolean {
  const text = JSON.stringify(entry).toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** The newest entries of some days, and the function that reads older ones. */
function useEntries(account: string, days: number) {
  const [entries, setEntries] = useState<Entry[] | undefined>(undefined);
  const [cursor, setCursor] = useState<string | undefined>(undefined);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const [version, setVersion] = useState(0);
  const read = (from: string | undefined, before: readonly Entry[]): void => {
    const query = new URLSearchParams({
      since: new Date(Date.now() - days * dayMs).toISOString(),
      before: new Date(Date.now() + 60_000).toISOString(),
      limit: "100",
      ...(from !== undefined && { cursor: from }),
    });
    get<Entry[]>(`/accounts/${account}/logs/audit?${query}`).then(
      ({ result, info }) => {
        setFailure(undefined);
        setEntries([...before, ...result]);
        setCursor(result.length < 100 ? undefined : info.cursor || undefined);
      },
      (error: unknown) => setFailure(error instanceof ApiFailure ? error : undefined),
    );
  };
  useEffect(() => {
    setEntries(undefined);
    read(undefined, []);
  }, [account, days, version]);
  return {
    entries,
    failure,
    more: cursor === undefined ? undefined : () => read(cursor, entries ?? []),
    reload: () => setVersion((each) => each + 1),
  };
}

function EntryPanel({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  const { action, actor, raw, resource, zone } = entry;
  return (
    <Dialog title={action.description} kind="side" onClose={onClose}>
      <Facts
        facts={[
          ["When", timeOf(action.time)],
          ["By", [actor.email, actor.token_name].filter(Boolean).join(", ") || actor.type],
          ["From", actor.ip_address ?? "–"],
          ["Call", <code key="call">{`${raw.method ?? ""} ${raw.uri ?? ""}`}</code>],
          ["Answer", String(raw.status_code ?? "–")],
          ["Resource", <code key="resource">{resource.id ?? "–"}</code>],
          ["Zone", zone?.name ?? "–"],
          ["Client", raw.user_agent ?? "–"],
        ]}
      />
      <Changes before={resource.before} after={resource.request} />
    </Dialog>
  );
}
