import { useState } from "preact/hooks";
import { invalidate, useGet } from "../../core/cache.ts";
import { asFailure, type ApiFailure } from "../../core/client.ts";
import { clockOf, count, plural } from "../../core/format.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Card, Notice } from "../../parts/layout.tsx";
import { Failure } from "../../parts/states.tsx";
import { toast } from "../../parts/toast.tsx";
import type { Backlog, Consumer, Queue } from "./queue-types.ts";
import { replay, type Replayed } from "./replay.ts";

interface DeadLettersProps {
  account: string;
  queue: Queue;
  backlog: Backlog | undefined;
}

/** For a dead letter queue: the queues whose messages end here, the way back, and the fate of those sent back. */
export function DeadLetters({ account, queue, backlog }: DeadLettersProps) {
  const queues = useGet<Queue[]>(`/accounts/${account}/queues?per_page=100`);
  const [target, setTarget] = useState<Queue | undefined>(undefined);
  const [last, setLast] = useState<Ended | undefined>(undefined);
  const refusal = useRefusal()("POST /accounts/{account_id}/queues/{queue_id}/messages/batch");
  const isEmpty = backlog?.backlog_count === 0;
  const sources = (queues.data ?? []).filter(({ consumers }) =>
    consumers.some(({ dead_letter_queue }) => dead_letter_queue === queue.queue_name),
  );
  if (sources.length === 0) return null;
  return (
    <Card title="Dead letters">
      <ul class="plain-list">
        {sources.map((source) => (
          <li key={source.queue_id} class="row spread">
            <p>
              Messages that failed in{" "}
              <a href={href(`/${account}/queues/${source.queue_id}`)}>{source.queue_name}</a> end here.
            </p>
            <Button
              icon="refresh"
              refusal={refusal ?? (isEmpty ? "no message is here" : undefined)}
              onPress={() => setTarget(source)}
            >
              Replay into {source.queue_name}
            </Button>
          </li>
        ))}
      </ul>
      {last !== undefined && <Outcome account={account} from={queue} last={last} backlog={backlog} />}
      {target !== undefined && (
        <ReplayDialog
          account={account}
          from={queue}
          to={target}
          onEnd={setLast}
          onClose={() => setTarget(undefined)}
        />
      )}
    </Card>
  );
}

/** A replay that has ended. */
interface Ended {
  to: Queue;
  replayed: Replayed;
  at: number;
}

interface OutcomeProps {
  account: string;
  from: Queue;
  last: Ended;
  backlog: Backlog | undefined;
}

/** The next step of the messages that were sent back, and those that have come here since. */
function Outcome({ account, from, last: { to, replayed, at }, backlog }: OutcomeProps) {
  const consumer = to.consumers.find((each) => each.dead_letter_queue === from.queue_name);
  const script = consumer?.script_name ?? consumer?.script;
  const arrived = backlog === undefined ? 0 : Math.max(0, backlog.backlog_count - replayed.left);
  const sent = `${plural(replayed.moved, "message")} went back to ${to.queue_name} at ${clockOf(at)}`;
  if (arrived === 0)
    return (
      <Notice>
        {sent}. {nextStep(to, consumer)}
      </Notice>
    );
  return (
    <Notice tone="warn">
      {sent}. Since then {plural(arrived, "message")} came here: delivery from {to.queue_name} failed
      {script === undefined ? (
        ". "
      ) : (
        <>
          , and the{" "}
          <a href={href(`/${account}/scripts/${encodeURIComponent(script)}?tab=logs`)}>
            live logs of {script}
          </a>{" "}
          show the errors of further attempts.{" "}
        </>
      )}
      Mend the cause before the next replay.
    </Notice>
  );
}

function nextStep(to: Queue, consumer: Consumer | undefined): string {
  if (to.settings.delivery_paused) return `Its delivery is paused: they wait until it is switched on.`;
  const script = consumer?.script_name ?? consumer?.script;
  if (consumer === undefined || script === undefined)
    return "They wait there until a client pulls them, and come back here if it acknowledges none of its attempts.";
  const retries = consumer.settings.max_retries;
  return `${script} gets them now. A message that fails again comes back here after ${plural(retries, "retry", "retries")}.`;
}

interface ReplayProps {
  account: string;
  from: Queue;
  to: Queue;
  onEnd: (ended: Ended) => void;
  onClose: () => void;
}

function ReplayDialog({ account, from, to, onEnd, onClose }: ReplayProps) {
  const path = `/accounts/${account}/queues/${from.queue_id}`;
  const backlog = useGet<Backlog>(`${path}/metrics`);
  const [progress, setProgress] = useState<Replayed | undefined>(undefined);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const run = async (): Promise<void> => {
    setFailure(undefined);
    setProgress({ moved: 0, kept: 0, left: 0 });
    try {
      const ends = { account, from: from.queue_id, to: to.queue_id };
      const replayed = await replay(ends, setProgress);
      const { moved, kept } = replayed;
      onEnd({ to, replayed, at: Date.now() });
      const rest = kept === 0 ? "" : `; ${count(kept)} with binary bodies stay, which only scripts can send`;
      toast(`${plural(moved, "message")} went back to ${to.queue_name}${rest}`);
      onClose();
    } catch (error) {
      setFailure(asFailure(error));
      setProgress(undefined);
    } finally {
      invalidate(path, `/accounts/${account}/queues/${to.queue_id}`);
    }
  };
  return (
    <Dialog title={`Replay into ${to.queue_name}`} onClose={onClose}>
      <div class="stack">
        <p>
          The messages of {from.queue_name} are sent to {to.queue_name} again, with new attempts, and removed
          here. If it is interrupted, a message may be in both.
        </p>
        {failure !== undefined && <Failure failure={failure} onRetry={() => void run()} />}
        <footer class="form-foot">
          <span role="status">{progress !== undefined && `${count(progress.moved)} sent …`}</span>
          <span class="spacer" />
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" isBusy={progress !== undefined} onPress={() => void run()}>
            {backlog.data === undefined
              ? "Replay"
              : `Replay ${plural(backlog.data.backlog_count, "message")}`}
          </Button>
        </footer>
      </div>
    </Dialog>
  );
}
