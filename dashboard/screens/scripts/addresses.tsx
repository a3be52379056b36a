import { AsCode } from "../../code/as-code.tsx";
import { useAction } from "../../core/action.ts";
import { useGet, type Query } from "../../core/cache.ts";
import type { Call } from "../../core/client.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href } from "../../core/router.ts";
import { Switch } from "../../parts/form.tsx";
import { Card, Facts } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import type { ScriptPlace } from "./script.ts";

/** How a script is reached, and what names it; the fields that the console uses. */
export interface Worker {
  subdomain: { enabled: boolean; previews_enabled: boolean; url?: string };
  references: {
    workers: { name: string }[];
    dispatch_namespace_outbounds: { namespace_name: string; worker_name: string }[];
    domains: { id: string; hostname: string; zone_name: string }[];
    queues: { queue_id: string; queue_name: string }[];
  };
}

const workerPath = ({ params, name }: ScriptPlace): string =>
  `/accounts/${params["account_id"]!}/workers/workers/${encodeURIComponent(name)}`;

export const useWorker = (place: ScriptPlace): Query<Worker> => useGet<Worker>(workerPath(place));

const Outside = ({ url }: { url: string }) => (
  <a href={url} target="_blank" rel="noopener noreferrer">
    {url}
  </a>
);

/** The address at which a script responds, for the line below its title. */
export function MainAddress({ of: worker }: { of: Worker }) {
  const { subdomain, references } = worker;
  if (subdomain.enabled && subdomain.url !== undefined) return <Outside url={subdomain.url} />;
  const [domain] = references.domains;
  return (
    <>{domain?.hostname ?? "No address of its own: a route of a zone, or another script, leads to it"}</>
  );
}

interface AddressesProps {
  account: string;
  place: ScriptPlace;
  worker: Query<Worker>;
}

/** The addresses of a script, the queues that it handles, and the scripts that call it. */
export function Addresses({ account, place, worker }: AddressesProps) {
  const op = `POST ${place.one}/subdomain`;
  const action = useAction({
    done: "The address was changed",
    invalidates: [workerPath(place), place.path],
    tellsFailure: true,
  });
  const refusal = useRefusal()(op);
  const callOf = (enabled: boolean): Call => ({ op, params: place.params, body: { enabled } });
  return (
    <Card title="Addresses">
      <Loaded of={worker} rows={3}>
        {({ subdomain, references }) => (
          <div class="stack">
            <div class="setting">
              <Switch
                label="Address of the account's subdomain"
                hint={subdomain.url ?? "The account has no subdomain: see Settings."}
                isOn={subdomain.enabled}
                refusal={refusal}
                onChange={(isOn) => void action.run(callOf(isOn))}
              />
              <AsCode call={callOf(!subdomain.enabled)} />
            </div>
            <Facts
              facts={[
                [
                  "Custom domains",
                  references.domains.length === 0
                    ? "none: the Routes tab of a zone adds one"
                    : references.domains.map(({ id, hostname, zone_name: zone }) => (
                        <div key={id}>
                          <a href={href(`/${account}/zones/${zone}/routes`)}>{hostname}</a>
                        </div>
                      )),
                ],
                [
                  "Handles the queues",
                  references.queues.length === 0
                    ? "none"
                    : references.queues.map(({ queue_id: id, queue_name: queue }) => (
                        <div key={id}>
                          <a href={href(`/${account}/queues/${id}`)}>{queue}</a>
                        </div>
                      )),
                ],
                ["Is called by", callersOf(references).join(", ") || "no other script"],
              ]}
            />
          </div>
        )}
      </Loaded>
    </Card>
  );
}

const callersOf = ({ workers, dispatch_namespace_outbounds: outbounds }: Worker["references"]): string[] => [
  ...workers.map(({ name }) => name),
  ...outbounds.map(({ namespace_name: name }) => `the customers of ${name}, with every outgoing request`),
];

/** The domains, queues and scripts that need the script, as text; undefined if there are none. */
export function usersOf({ references }: Worker): string | undefined {
  const { domains, queues } = references;
  const parts = [
    ...domains.map(({ hostname }) => hostname),
    ...queues.map(({ queue_name: queue }) => `the queue ${queue}`),
    ...callersOf(references),
  ];
  return parts.length === 0 ? undefined : parts.join(", ");
}
