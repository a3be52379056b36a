import { useState } from "preact/hooks";
import { AsCode } from "../../code/as-code.tsx";
import type { Call } from "../../core/client.ts";
import { clockOf, count, duration } from "../../core/format.ts";
import { useShortcuts } from "../../core/keys.ts";
import { rowsOf } from "../../core/pages.ts";
import { useSearch } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { Choice, Filter } from "../../parts/filter.tsx";
import { Grid, type Column } from "../../parts/grid.tsx";
import { Notice, State } from "../../parts/layout.tsx";
import { Empty, Failure } from "../../parts/states.tsx";
import { RunPanel } from "./run-panel.tsx";
import type { Received } from "./run-ring.ts";
import { endOf, levels, outcomes, serverFilters, summaryOf, titleOf, toneOf, type RunFilter } from "./run.ts";
import { useTail, type LiveTail } from "./use-tail.ts";

interface LiveLogProps {
  /** The operation that makes the tail, such as "POST /accounts/{account_id}/workers/tails". */
  op: string;
  params: Readonly<Record<string, string>>;
  /** Shows which script a run is of. */
  isOfMany?: boolean;
}

/** The runs of a script, of a customer's script or of an account, as they end. Keys: p holds, c clears, / filters. */
export function LiveLog({ op, params, isOfMany = false }: LiveLogProps) {
  const [outcome, setOutcome] = useSearch("outcome");
  const [status, setStatus] = useSearch("status");
  const [level, setLevel] = useSearch("level");
  const [share, setShare] = useSearch("share");
  const [text, setText] = useSearch("search");
  const filter: RunFilter = { outcome, status, level, text };
  const call: Call = { op, params, body: { filters: serverFilters(filter, share) } };
  const tail = useTail(call, filter);
  const [held, setHeld] = useState<Pick<LiveTail, "runs" | "received"> | undefined>(undefined);
  const [open, setOpen] = useState<Received | undefined>(undefined);
  const hold = (isHeld: boolean): void =>
    setHeld(isHeld ? { runs: [...tail.runs], received: tail.received } : undefined);
  const clear = (): void => {
    tail.clear();
    setHeld(undefined);
  };
  useShortcuts([
    { keys: "p", label: "Hold the log, or follow it", run: () => hold(held === undefined) },
    { keys: "c", label: "Clear the log", run: clear },
  ]);
  if (tail.failure !== undefined) return <Failure failure={tail.failure} onRetry={tail.retry} />;
  const runs = (held ?? tail).runs;
  return (
    <div class="stack">
      <div class="toolbar close">
        <Filter label="Filter runs by text" value={text} onChange={setText} />
        <Choice label="Outcome" value={outcome} onChange={setOutcome} options={outcomeChoices} />
        <Choice label="Status" value={status} onChange={setStatus} options={statusChoices} />
        <Choice label="Level" value={level} onChange={setLevel} options={levelChoices} />
        <Choice label="Share" value={share} onChange={setShare} options={shareChoices} />
        <Button
          icon={held === undefined ? "pause" : "play"}
          isPressed={held !== undefined}
          onPress={() => hold(held === undefined)}
        >
          Hold
        </Button>
        <Button onPress={clear}>Clear</Button>
        <AsCode call={call} />
      </div>
      <Connection tail={tail} held={held} onFollow={() => hold(false)} />
      {runs.length === 0 ? (
        <Empty icon="logs" title={tail.received === 0 ? "No run yet" : "No run matches the filter"}>
          <p>Each run is shown as it ends. Earlier ones are not kept.</p>
        </Empty>
      ) : (
        <Grid
          label="Runs"
          columns={isOfMany ? [...columns.slice(0, 2), scriptColumn, ...columns.slice(2)] : columns}
          rows={rowsOf(runs)}
          keyOf={({ number }) => String(number)}
          openKey={open === undefined ? undefined : String(open.number)}
          onOpen={setOpen}
          follow={{ isOn: held === undefined, onChange: (isOn) => hold(!isOn) }}
        />
      )}
      {open !== undefined && (
        <RunPanel account={params["account_id"]!} run={open.run} onClose={() => setOpen(undefined)} />
      )}
    </div>
  );
}

const all = (label: string) => ({ value: "", label });
const outcomeChoices = [
  all("Any outcome"),
  { value: "faults", label: "faults" },
  ...outcomes.map((value) => ({ value, label: value })),
];
const statusChoices = [
  all("Any status"),
  ...["2", "3", "4", "5"].map((value) => ({ value, label: `${value}xx` })),
];
const levelChoices = [
  all("Any level"),
  ...levels.slice(1).map((value) => ({ value, label: `${value} and above` })),
];
const shareChoices = [
  all("All runs"),
  { value: "0.1", label: "10 % of the runs" },
  { value: "0.01", label: "1 % of the runs" },
];

const columns: Column<Received>[] = [
  {
    key: "time",
    title: "Time",
    width: "116px",
    cell: ({ run }) => <time>{clockOf(run.eventTimestamp)}</time>,
  },
  {
    key: "state",
    title: "End",
    width: "132px",
    cell: ({ run }) => <State tone={toneOf(run)}>{run.scriptName === null ? "missed" : endOf(run)}</State>,
  },
  {
    key: "name",
    title: "Event",
    width: "minmax(140px, 2fr)",
    isBelow: true,
    cell: ({ run }) => <code>{titleOf(run)}</code>,
  },
  {
    key: "output",
    title: "Output",
    width: "minmax(120px, 3fr)",
    isExtra: true,
    cell: ({ run }) => <span class="faint">{summaryOf(run).slice(0, 400)}</span>,
  },
  {
    key: "wall",
    title: "Time taken",
    width: "96px",
    isNumber: true,
    isExtra: true,
    cell: ({ run }) => (run.wallTime === undefined ? "" : duration(run.wallTime)),
  },
];
const scriptColumn: Column<Received> = {
  key: "script",
  title: "Script",
  width: "minmax(100px, 1fr)",
  isExtra: true,
  cell: ({ run }) => run.scriptName ?? "",
};

/** A status line: the state of the connection, and the number of runs since the log was held. */
function Connection({
  tail,
  held,
  onFollow,
}: {
  tail: LiveTail;
  held: Pick<LiveTail, "received"> | undefined;
  onFollow: () => void;
}) {
  if (tail.lostAt !== undefined)
    return <Notice tone="warn">As of {clockOf(tail.lostAt)}, connecting again …</Notice>;
  if (held !== undefined)
    return (
      <Notice actions={<Button onPress={onFollow}>Follow</Button>}>
        Held · {count(tail.received - held.received)} new
      </Notice>
    );
  return (
    <p class="faint" role="status">
      {tail.state === "opening" ? "Connecting …" : `Following · ${count(tail.runs.length)} shown`}
    </p>
  );
}
