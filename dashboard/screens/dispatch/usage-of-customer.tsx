import { useMemo } from "preact/hooks";
import { AsCode } from "../../code/as-code.tsx";
import { useGet } from "../../core/cache.ts";
import { count, duration, timeOf } from "../../core/format.ts";
import { Card, Figure, Notice, State, Time } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import type { ScriptPlace } from "../scripts/script.ts";

/** The runs of a customer in the last hour, as the API shows them. */
export interface Usage {
  script_name: string;
  since: string;
  requests: number;
  faults: number;
  cpu_ms: number;
  cpu_ms_p50: number | null;
  cpu_ms_p99: number | null;
  last_fault: { at: string; message: string } | null;
  quarantined: boolean;
}

export const readEveryMs = 5000;
/** Customers with the most faults that one call lists. */
const faultyMax = 1000;

export const atMost = (ms: number | null): string => (ms === null ? "–" : `≤ ${ms} ms`);

export const Faults = ({ of }: { of: Pick<Usage, "faults" | "last_fault"> }) =>
  of.faults === 0 ? (
    <>0</>
  ) : (
    <span title={of.last_fault?.message}>
      <State tone="bad">{count(of.faults)}</State>
    </span>
  );

export const LastFault = ({ of: { last_fault: fault } }: { of: Usage }) =>
  fault === null ? (
    <span class="faint">none</span>
  ) : (
    <span title={fault.message}>
      <Time at={fault.at} /> <code>{fault.message}</code>
    </span>
  );

/** The faults of a namespace's customers by their names. Undefined for one whose faults are not known. */
export function useFaults(path: string): (name: string) => Pick<Usage, "faults" | "last_fault"> | undefined {
  const { data } = useGet<Usage[]>(`${path}/usage?order=faults&per_page=${faultyMax}`, {
    everyMs: readEveryMs,
  });
  const byName = useMemo(() => new Map(data?.map((usage) => [usage.script_name, usage])), [data]);
  if (data === undefined) return () => undefined;
  // The list is by faults: customers behind a last one without faults have none.
  const others =
    data.length < faultyMax || data.at(-1)?.faults === 0 ? { faults: 0, last_fault: null } : undefined;
  return (name) => byName.get(name) ?? others;
}

/** The runs of one customer in the last hour. */
export function CustomerUsage({ place: { one, params, path } }: { place: ScriptPlace }) {
  const usage = useGet<Usage>(`${path}/usage`, { everyMs: readEveryMs });
  return (
    <Card
      title="The last hour"
      actions={
        <>
          {usage.data && <span class="faint">since {timeOf(usage.data.since)}</span>}
          <AsCode call={{ op: `GET ${one}/usage`, params }} />
        </>
      }
    >
      {usage.messages?.map(({ message }) => (
        <Notice key={message}>{message}.</Notice>
      ))}
      <Loaded of={usage} rows={2}>
        {(data) => (
          <div class="figures">
            <Figure name="Requests" value={count(data.requests)} />
            <Figure
              name="Faults"
              value={<Faults of={data} />}
              note={data.last_fault === null ? undefined : <LastFault of={data} />}
            />
            <Figure
              name="CPU time"
              value={duration(data.cpu_ms)}
              note={`p50 ${atMost(data.cpu_ms_p50)}, p99 ${atMost(data.cpu_ms_p99)}`}
            />
            {data.quarantined && <State tone="warn">on its own</State>}
          </div>
        )}
      </Loaded>
    </Card>
  );
}
