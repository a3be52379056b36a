import { useState } from "preact/hooks";
import { asFailure, perform, type ApiFailure } from "../../core/client.ts";
import { count, plural } from "../../core/format.ts";
import { useRefusal } from "../../core/permissions.ts";
import { Button } from "../../parts/button.tsx";
import { ChosenBar } from "../../parts/chosen-bar.tsx";
import type { Chosen } from "../../parts/chosen.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Notice } from "../../parts/layout.tsx";
import { toast } from "../../parts/toast.tsx";
import type { Instance } from "./workflow.ts";

const instancesOf = "/accounts/{account_id}/workflows/{workflow_name}/instances";
const restart = `PATCH ${instancesOf}/{instance_id}/status`;
const shownMax = 5;

interface ManyProps {
  params: Readonly<Record<string, string>>;
  chosen: Chosen<Instance>;
  onDone: () => void;
}

/** Restarts, terminates or deletes the chosen instances of a workflow. */
export function Many({ params, chosen, onDone }: ManyProps) {
  const [open, setOpen] = useState<"restart" | "terminate" | "delete" | undefined>(undefined);
  const refusal = useRefusal()(restart);
  const some = plural(chosen.keys.length, "instance");
  const close = (): void => setOpen(undefined);
  const settle = (): void => {
    chosen.clear();
    onDone();
  };
  return (
    <ChosenBar noun="instance" of={chosen}>
      <Button icon="refresh" refusal={refusal} onPress={() => setOpen("restart")}>
        Restart
      </Button>
      <Button kind="bad" icon="close" refusal={refusal} onPress={() => setOpen("terminate")}>
        Terminate
      </Button>
      <Button kind="bad" icon="trash" refusal={refusal} onPress={() => setOpen("delete")}>
        Delete
      </Button>
      {open === "restart" && (
        <RestartDialog params={params} ids={chosen.keys} onDone={settle} onClose={close} />
      )}
      {open === "terminate" && (
        <Confirm<{ instancesTerminated: number }>
          title={`Terminate ${some}`}
          submit="Terminate"
          call={{ op: `POST ${instancesOf}/batch/terminate`, params, body: chosen.keys }}
          onDone={({ instancesTerminated: ended }) => {
            toast(`${plural(ended, "instance")} ${ended === 1 ? "was" : "were"} terminated`);
            settle();
          }}
          onClose={close}
        >
          <p>Their steps end where they are. Those that have ended stay as they are.</p>
        </Confirm>
      )}
      {open === "delete" && (
        <Confirm<{ deleted: unknown[]; errors: { id: string; message: string }[] }>
          title={`Delete ${some}`}
          submit="Delete"
          call={{ op: `POST ${instancesOf}/batch/delete`, params, body: { instances: chosen.keys } }}
          onDone={({ deleted, errors: [first] }) => {
            if (first === undefined)
              toast(`${plural(deleted.length, "instance")} ${deleted.length === 1 ? "was" : "were"} deleted`);
            else toast(`${count(deleted.length)} of ${some} deleted. ${first.id}: ${first.message}`, "bad");
            settle();
          }}
          onClose={close}
        >
          <p>Their steps and results are deleted for good.</p>
        </Confirm>
      )}
    </ChosenBar>
  );
}

interface RestartProps {
  params: Readonly<Record<string, string>>;
  ids: readonly string[];
  onDone: () => void;
  onClose: () => void;
}

/** Restarts instances one after another, and lists those that the server refused. */
function RestartDialog({ params, ids, onDone, onClose }: RestartProps) {
  const [done, setDone] = useState<number | undefined>(undefined);
  const [refused, setRefused] = useState<readonly { id: string; failure: ApiFailure }[]>([]);
  const run = async (): Promise<void> => {
    const failures: { id: string; failure: ApiFailure }[] = [];
    for (const [index, id] of ids.entries()) {
      setDone(index);
      try {
        await perform({ op: restart, params: { ...params, instance_id: id }, body: { status: "restart" } });
      } catch (error) {
        failures.push({ id, failure: asFailure(error) });
      }
    }
    setDone(undefined);
    if (failures.length > 0) return setRefused(failures);
    toast(`${plural(ids.length, "instance")} ${ids.length === 1 ? "was" : "were"} restarted`);
    onClose();
    onDone();
  };
  return (
    <Dialog title={`Restart ${plural(ids.length, "instance")}`} onClose={onClose}>
      <div class="stack">
        <p>Their steps are forgotten, with their attempts and errors, and all of them run again.</p>
        {refused.length > 0 && (
          <div role="alert">
            <Notice tone="bad">
              {count(refused.length)} of {count(ids.length)} were not restarted.
              <ul class="plain-list">
                {refused.slice(0, shownMax).map(({ id, failure }) => (
                  <li key={id}>
                    {id}: {failure.message}
                  </li>
                ))}
              </ul>
            </Notice>
          </div>
        )}
        <footer class="form-foot">
          <span role="status">{done !== undefined && `${count(done)} of ${count(ids.length)} …`}</span>
          <span class="spacer" />
          <Button
            onPress={() => {
              onClose();
              if (refused.length > 0) onDone();
            }}
          >
            {refused.length > 0 ? "Close" : "Cancel"}
          </Button>
          {refused.length === 0 && (
            <Button kind="bad" isBusy={done !== undefined} onPress={() => void run()}>
              Restart
            </Button>
          )}
        </footer>
      </div>
    </Dialog>
  );
}
