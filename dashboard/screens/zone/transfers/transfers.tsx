import { useState } from "preact/hooks";
import { useAction } from "../../../core/action.ts";
import { useGet } from "../../../core/cache.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { useZone } from "../../../core/zone.ts";
import { FormDialog } from "../../../parts/form-dialog.tsx";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Card, Facts, Page, State, Time } from "../../../parts/layout.tsx";
import { Empty, Failure, Loaded } from "../../../parts/states.tsx";
import type { ScreenProps } from "../../../shell/route.ts";
import { Parties, type Peer } from "./parties.tsx";

interface Outgoing {
  id: string;
  name: string;
  peers: string[];
  soa_serial: number;
  checked_time: string | null;
  last_transferred_time: string | null;
}

const base = "/zones/{zone_id}/secondary_dns/outgoing";

/** Secondary name servers that take the zone from here. */
export default function Transfers({ account }: ScreenProps) {
  const zone = useZone();
  const path = `/zones/${zone.id}/secondary_dns/outgoing`;
  const outgoing = useGet<Outgoing>(path);
  const hasNone =
    outgoing.failure !== undefined &&
    outgoing.data === undefined &&
    outgoing.failure.status !== 403 &&
    outgoing.failure.status !== 0;
  const status = useGet<"Enabled" | "Disabled">(outgoing.data === undefined ? undefined : `${path}/status`);
  const peers = useGet<Peer[]>(`/accounts/${account}/secondary_dns/peers`);
  const [open, setOpen] = useState<"edit" | "delete" | undefined>(undefined);
  const action = useAction({ done: "Done", invalidates: [path], tellsFailure: true });
  const refusal = useRefusal()(`POST ${base}`);
  const isOn = status.data === "Enabled";
  const run = (name: string): void =>
    void action.run({ op: `POST ${base}/${name}`, params: { zone_id: zone.id } });
  const nameOf = (id: string): string => peers.data?.find((peer) => peer.id === id)?.name ?? id;
  return (
    <Page title="Transfers" about="Secondary name servers take the zone from here, and are told of changes.">
      <div class="stack">
        {hasNone ? (
          <Empty
            icon="route"
            title="The zone is not transferred to others"
            actions={
              <Button
                icon="plus"
                kind="primary"
                refusal={refusal ?? (peers.data?.length === 0 ? "add a peer first" : undefined)}
                onPress={() => setOpen("edit")}
              >
                Choose peers
              </Button>
            }
          >
            <p>A peer is a secondary name server, with its address and its key.</p>
          </Empty>
        ) : outgoing.failure !== undefined && outgoing.data === undefined ? (
          <Failure failure={outgoing.failure} onRetry={outgoing.reload} />
        ) : (
          <Loaded of={outgoing}>
            {(data) => (
              <Card
                title={
                  <State tone={isOn ? "ok" : "off"}>{isOn ? "Transfers are on" : "Transfers are off"}</State>
                }
                actions={
                  <>
                    <Button refusal={refusal} onPress={() => run("force_notify")}>
                      Notify now
                    </Button>
                    <Button refusal={refusal} onPress={() => run(isOn ? "disable" : "enable")}>
                      {isOn ? "Switch off" : "Switch on"}
                    </Button>
                    <Button icon="edit" refusal={refusal} onPress={() => setOpen("edit")}>
                      Edit
                    </Button>
                    <Button
                      icon="trash"
                      kind="quiet"
                      label="Delete"
                      refusal={refusal}
                      onPress={() => setOpen("delete")}
                    />
                  </>
                }
              >
                <Facts
                  facts={[
                    ["Peers", data.peers.map(nameOf).join(", ")],
                    ["Serial", String(data.soa_serial)],
                    [
                      "Last asked",
                      data.checked_time === null ? "never" : <Time key="checked" at={data.checked_time} />,
                    ],
                    [
                      "Last transfer",
                      data.last_transferred_time === null ? (
                        "never"
                      ) : (
                        <Time key="last" at={data.last_transferred_time} />
                      ),
                    ],
                  ]}
                />
              </Card>
            )}
          </Loaded>
        )}
        <Parties account={account} />
      </div>
      {open === "edit" && (
        <PeersDialog
          current={outgoing.data}
          peers={peers.data ?? []}
          path={path}
          onClose={() => setOpen(undefined)}
        />
      )}
      {open === "delete" && (
        <Confirm
          title="Stop all transfers"
          submit="Stop"
          call={{ op: `DELETE ${base}`, params: { zone_id: zone.id } }}
          done="The zone is not transferred any more"
          invalidates={[path]}
          onClose={() => setOpen(undefined)}
        />
      )}
    </Page>
  );
}

function PeersDialog({
  current,
  peers,
  path,
  onClose,
}: {
  current: Outgoing | undefined;
  peers: readonly Peer[];
  path: string;
  onClose: () => void;
}) {
  const zone = useZone();
  const [chosen, setChosen] = useState<readonly string[]>(current?.peers ?? []);
  return (
    <FormDialog
      title="Peers of the zone"
      call={{
        op: `${current === undefined ? "POST" : "PUT"} ${base}`,
        params: { zone_id: zone.id },
        body: { name: `${zone.name}.`, peers: chosen },
      }}
      submit="Save"
      done="The peers were saved"
      invalidates={[path]}
      onClose={onClose}
    >
      {() => (
        <fieldset class="choices">
          <legend>Peers that may take the zone</legend>
          {peers.map(({ id, name, ip }) => (
            <label key={id}>
              <input
                type="checkbox"
                checked={chosen.includes(id)}
                onChange={() =>
                  setChosen(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id])
                }
              />
              {name} <code>{ip}</code>
            </label>
          ))}
        </fieldset>
      )}
    </FormDialog>
  );
}
