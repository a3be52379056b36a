import { useState } from "preact/hooks";
import { useAction } from "../../../core/action.ts";
import { useGet } from "../../../core/cache.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { useZone } from "../../../core/zone.ts";
import { FormDialog } from "../../../parts/form-dialog.tsx";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Card, Facts, Page, State, Time } from "../../../parts/layout.tsx";
import { Empty, Loaded } from "../../../parts/states.tsx";
import type { ScreenProps } from "../../../shell/route.ts";
import { Parties, type Peer } from "./parties.tsx";

interface Outgoing {
  id: string;
  name: string;
  peers: string[];
  soa_serial: number;
  checked_time: string | null;
  last_transferred_time: string | null;
  status: "Enabled" | "Disabled";
}

const base = "/zones/{zone_id}/secondary_dns/outgoing";

/** Secondary name servers that take the zone from here. */
export default function Transfers({ account }: ScreenProps) {
  const zone = useZone();
  const peers = useGet<Peer[]>(`/accounts/${account}/secondary_dns/peers`);
  const hasNoPeer = peers.data?.length === 0;
  // Unlike the public operation, it is not answered 404 for a zone without a transfer.
  const path = `/zones/${zone.id}/edge/transfers`;
  const transfers = useGet<{ outgoing: Outgoing | null }>(path);
  const [open, setOpen] = useState<"edit" | "delete" | undefined>(undefined);
  const action = useAction({ done: "Done", invalidates: [path], tellsFailure: true });
  const refusal = useRefusal()(`POST ${base}`);
  const run = (name: string): void =>
    void action.run({ op: `POST ${base}/${name}`, params: { zone_id: zone.id } });
  return (
    <Page
      title="Transfers"
      about="Secondary name servers take the zone from here, and are notified of changes."
    >
      <div class="stack">
        <Loaded of={transfers}>
          {({ outgoing }) =>
            outgoing === null ? (
              <Empty
                icon="route"
                title="The zone is not transferred to others"
                actions={
                  <Button
                    icon="plus"
                    kind="primary"
                    refusal={refusal ?? (hasNoPeer ? "add a peer first" : undefined)}
                    onPress={() => setOpen("edit")}
                  >
                    Choose peers
                  </Button>
                }
              >
                <p>A peer is a secondary name server, with its address and its key.</p>
              </Empty>
            ) : (
              <OutgoingCard
                outgoing={outgoing}
                peers={peers.data ?? []}
                refusal={refusal}
                run={run}
                onAsk={setOpen}
              />
            )
          }
        </Loaded>
        <Parties account={account} />
      </div>
      {open === "edit" && (
        <PeersDialog
          current={transfers.data?.outgoing ?? undefined}
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

interface OutgoingCardProps {
  outgoing: Outgoing;
  peers: readonly Peer[];
  refusal: string | undefined;
  run: (name: string) => void;
  onAsk: (what: "edit" | "delete") => void;
}

function OutgoingCard({ outgoing, peers, refusal, run, onAsk }: OutgoingCardProps) {
  const isOn = outgoing.status === "Enabled";
  const nameOf = (id: string): string => peers.find((peer) => peer.id === id)?.name ?? id;
  const time = (at: string | null) => (at === null ? "never" : <Time at={at} />);
  return (
    <Card
      title={<State tone={isOn ? "ok" : "off"}>{isOn ? "Transfers are on" : "Transfers are off"}</State>}
      actions={
        <>
          <Button
            refusal={refusal ?? (isOn ? undefined : "transfers are off")}
            onPress={() => run("force_notify")}
          >
            Notify now
          </Button>
          <Button refusal={refusal} onPress={() => run(isOn ? "disable" : "enable")}>
            {isOn ? "Switch off" : "Switch on"}
          </Button>
          <Button icon="edit" refusal={refusal} onPress={() => onAsk("edit")}>
            Edit
          </Button>
          <Button
            icon="trash"
            kind="quiet"
            label="Delete"
            refusal={refusal}
            onPress={() => onAsk("delete")}
          />
        </>
      }
    >
      <Facts
        facts={[
          ["Peers", outgoing.peers.map(nameOf).join(", ")],
          ["Serial", String(outgoing.soa_serial)],
          ["Last asked", time(outgoing.checked_time)],
          ["Last transfer", time(outgoing.last_transferred_time)],
        ]}
      />
    </Card>
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
