import { useRef } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { bytes, clockOf, count, duration, plural } from "../../core/format.ts";
import { Card, Figure, Notice } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";

interface Figures {
  measured_on: string;
  requests: number;
  failed_requests: number;
  p50_seconds: number | null;
  p95_seconds: number | null;
  script_runs: number;
  failed_script_runs: number;
  cells: number;
  queue_messages: number;
  oldest_message_seconds: number;
  late_alarms: number;
  workflow_lag_seconds: number;
  disk_free_bytes: number | null;
  failing_certificates: number;
  restarts: number;
  uncaught_exceptions: number;
}

const everyMs = 10_000;
const share = (part: number, of: number): string =>
  of === 0 ? "none yet" : `${((part / of) * 100).toFixed(part === 0 ? 0 : 2)} % failed`;

/** The figures of the node, refreshed while they are on screen. */
export function InstallationFigures({ account }: { account: string }) {
  const overview = useGet<{ figures: Figures | null }>(`/accounts/${account}/edge/overview`, { everyMs });
  // Accounts of customers do not see the machines.
  if (overview.data === undefined && overview.failure?.status === 403) return null;
  return (
    <Card
      title="This node"
      actions={overview.at > 0 && <span class="faint">as of {clockOf(overview.at)}</span>}
    >
      <Loaded of={overview} rows={2}>
        {({ figures }) =>
          figures === null ? (
            <Notice>
              Start the server with <code>--metrics-listen</code>, and its requests, errors and queues are
              shown here.
            </Notice>
          ) : (
            <Numbers figures={figures} />
          )
        }
      </Loaded>
    </Card>
  );
}

function Numbers({ figures }: { figures: Figures }) {
  const perSecond = useRate(figures);
  const seconds = (value: number | null): string => (value === null ? "–" : `≤ ${duration(value * 1000)}`);
  return (
    <div class="figures fives">
      <Figure
        name="Requests"
        value={count(figures.requests)}
        note={`${perSecond === undefined ? "" : `${perSecond}/s · `}${share(figures.failed_requests, figures.requests)}`}
      />
      <Figure
        name="Median response time"
        value={seconds(figures.p50_seconds)}
        note={`95 % within ${figures.p95_seconds === null ? "–" : duration(figures.p95_seconds * 1000)}`}
      />
      <Figure
        name="Script runs"
        value={count(figures.script_runs)}
        note={share(figures.failed_script_runs, figures.script_runs)}
      />
      <Figure name="Script processes" value={count(figures.cells)} />
      <Figure
        name="Queued messages"
        value={count(figures.queue_messages)}
        note={
          figures.queue_messages === 0
            ? "nothing waits"
            : `the oldest for ${duration(figures.oldest_message_seconds * 1000)}`
        }
      />
      <Figure
        name="Late alarms"
        value={count(figures.late_alarms)}
        note={
          figures.workflow_lag_seconds < 0.001
            ? "workflows are on time"
            : `workflows are ${duration(figures.workflow_lag_seconds * 1000)} late`
        }
      />
      <Figure
        name="Free disk"
        value={figures.disk_free_bytes === null ? "–" : bytes(figures.disk_free_bytes)}
      />
      <Figure name="Failing certificates" value={count(figures.failing_certificates)} />
      <Figure
        name="Unexpected errors"
        value={count(figures.uncaught_exceptions)}
        note={figures.restarts === 0 ? "no restart" : plural(figures.restarts, "restart")}
      />
    </div>
  );
}

/** Requests in a second, between the last two readings; undefined at the first one. */
function useRate({ measured_on, requests }: Figures): string | undefined {
  const last = useRef({ measured_on, requests });
  const rate = useRef<string | undefined>(undefined);
  if (last.current.measured_on !== measured_on) {
    const ms = Date.parse(measured_on) - Date.parse(last.current.measured_on);
    // A restart counts from zero again.
    const more = requests - last.current.requests;
    rate.current = more < 0 ? undefined : ((more / ms) * 1000).toFixed(1);
    last.current = { measured_on, requests };
  }
  return rate.current;
}
