import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { useRefusal } from "../../core/permissions.ts";
import { setSearch } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { TextField } from "../../parts/form.tsx";
import { Card, State, Time } from "../../parts/layout.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { one, shortId, type Deployment, type Version, type ScriptPlace } from "./script.ts";

interface TabProps {
  place: ScriptPlace;
}

const op = `POST ${one}/deployments`;
const messageOf = (annotations: Record<string, string>): string => annotations["workers/message"] ?? "";

/** The versions of a script with their shares of the requests, and the deployments before. */
export function Versions({ place }: TabProps) {
  const path = place.path;
  const versions = useGet<{ items: Version[] }>(`${path}/versions?per_page=50`);
  const deployments = useGet<{ deployments: Deployment[] }>(`${path}/deployments?per_page=25`);
  const [chosen, setChosen] = useState<Version | undefined>(undefined);
  const refusal = useRefusal()(op);
  const current = deployments.data?.deployments[0];
  const earlier = deployments.data?.deployments[1]?.versions[0]?.version_id;
  const shareOf = (id: string): number | undefined =>
    current?.versions.find(({ version_id }) => version_id === id)?.percentage;
  return (
    <div class="stack">
      <Loaded of={versions}>
        {({ items }) => (
          <Card
            title="Versions"
            actions={
              <RollBack
                to={items.find(({ id }) => id === earlier && shareOf(id) !== 100)}
                refusal={refusal}
                onPress={setChosen}
              />
            }
          >
            <Table
              label="Versions"
              rows={items}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: "Version",
                  cell: ({ id, number }) => <code title={id}>{`${number} · ${shortId(id)}`}</code>,
                },
                {
                  title: "Requests",
                  cell: ({ id }) => {
                    const share = shareOf(id);
                    return share === undefined ? (
                      <span class="faint">none</span>
                    ) : (
                      <State tone="ok">{share} %</State>
                    );
                  },
                },
                { title: "Message", isWide: true, cell: ({ annotations }) => messageOf(annotations) },
                {
                  title: "By",
                  isExtra: true,
                  cell: ({ metadata }) => metadata.author_email || metadata.source,
                },
                { title: "Made", cell: ({ metadata }) => <Time at={metadata.created_on} /> },
              ]}
              actions={(version) => (
                <Menu
                  label={`Actions of version ${version.number}`}
                  items={[
                    {
                      label: "Show its code",
                      icon: "code",
                      onSelect: () => setSearch({ tab: "", version: version.id }, false),
                    },
                    {
                      label: "Deploy",
                      icon: "upload",
                      refusal: refusal ?? (shareOf(version.id) === 100 ? "it has all requests" : undefined),
                      onSelect: () => setChosen(version),
                    },
                  ]}
                />
              )}
            />
          </Card>
        )}
      </Loaded>
      <Loaded of={deployments}>{(data) => <Deployments list={data.deployments} />}</Loaded>
      {chosen !== undefined && (
        <Deploy place={place} version={chosen} current={current} onClose={() => setChosen(undefined)} />
      )}
    </div>
  );
}

interface RollBackProps {
  /** The version of the deployment before. */
  to: Version | undefined;
  refusal: string | undefined;
  onPress: (version: Version) => void;
}

const RollBack = ({ to, refusal, onPress }: RollBackProps) => (
  <Button
    icon="refresh"
    refusal={refusal ?? (to === undefined ? "no other version was deployed before" : undefined)}
    onPress={() => to !== undefined && onPress(to)}
  >
    {to === undefined ? "Roll back" : `Roll back to version ${to.number}`}
  </Button>
);

const Deployments = ({ list }: { list: readonly Deployment[] }) => (
  <Card title="Deployments">
    {list.length === 0 ? (
      <p>Nothing is deployed.</p>
    ) : (
      <Table
        label="Deployments"
        rows={list}
        keyOf={({ id }) => id}
        columns={[
          { title: "Deployment", cell: ({ id }) => <code title={id}>{shortId(id)}</code> },
          {
            title: "Versions",
            isWide: true,
            cell: ({ versions }) =>
              versions
                .map(({ version_id, percentage }) => `${shortId(version_id)} ${percentage} %`)
                .join(", "),
          },
          { title: "By", isExtra: true, cell: ({ author_email }) => author_email },
          { title: "When", cell: ({ created_on }) => <Time at={created_on} /> },
        ]}
      />
    )}
  </Card>
);

interface DeployProps extends TabProps {
  version: Version;
  current: Deployment | undefined;
  onClose: () => void;
}

/** Gives a version a share of the requests. The version with the most requests now keeps the rest. */
function Deploy({ place, version, current, onClose }: DeployProps) {
  const [share, setShare] = useState("100");
  const other = current?.versions
    .filter(({ version_id }) => version_id !== version.id)
    .toSorted((a, b) => b.percentage - a.percentage)[0]?.version_id;
  const percentage = Number(share);
  const versions = [
    { version_id: version.id, percentage },
    ...(percentage < 100 && other !== undefined ? [{ version_id: other, percentage: 100 - percentage }] : []),
  ];
  const isShare = percentage > 0 && percentage <= 100;
  return (
    <FormDialog
      title={`Deploy version ${version.number}`}
      call={{ op, params: place.params, body: { strategy: "percentage", versions } }}
      submit="Deploy"
      done="The version was deployed"
      refusal={isShare ? undefined : "the share is a number from 1 to 100"}
      invalidates={[place.path]}
      onClose={onClose}
    >
      {() => (
        <TextField
          label="Share of the requests in percent"
          type="number"
          value={share}
          onChange={setShare}
          hint={
            other === undefined ? "No other version is deployed." : `Version ${shortId(other)} has the rest.`
          }
          isNarrow
          autofocus
        />
      )}
    </FormDialog>
  );
}
