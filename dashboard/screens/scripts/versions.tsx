import { useState } from "preact/hooks";
import { useGet, type Query } from "../../core/cache.ts";
import { useRefusal } from "../../core/permissions.ts";
import { setSearch, useSearch } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { TextField } from "../../parts/form.tsx";
import { Card, State, Time } from "../../parts/layout.tsx";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import { Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { Difference } from "./difference.tsx";
import { one, shortId, type Deployment, type Version, type ScriptPlace } from "./script.ts";

interface TabProps {
  place: ScriptPlace;
}

const op = `POST ${one}/deployments`;
const messageOf = (annotations: Record<string, string>): string => annotations["workers/message"] ?? "";

/** The versions of a script, or the difference of two of them if the address names them. */
export function Versions({ place }: TabProps) {
  const [from] = useSearch("from");
  const [to] = useSearch("to");
  const versions = useGet<{ items: Version[] }>(`${place.path}/versions?per_page=50`);
  if (from === "" || to === "") return <List place={place} versions={versions} />;
  return <Difference place={place} from={from} to={to} versions={versions.data?.items ?? []} />;
}

interface ListProps extends TabProps {
  versions: Query<{ items: Version[] }>;
}

/** The versions of a script with their shares of the requests, and the deployments before. */
function List({ place, versions }: ListProps) {
  const path = place.path;
  const deployments = useGet<{ deployments: Deployment[] }>(`${path}/deployments?per_page=25`);
  const [chosen, setChosen] = useState<{ version: Version; isBack: boolean } | undefined>(undefined);
  const refusal = useRefusal()(op);
  const current = deployments.data?.deployments[0];
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
                to={earlierOf(items, deployments.data?.deployments ?? [])}
                refusal={refusal}
                onPress={(version) => setChosen({ version, isBack: true })}
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
                  cell: ({ id, number }) => (
                    <code class="nowrap" title={id}>{`${number} · ${shortId(id)}`}</code>
                  ),
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
                    comparing(version, items),
                    {
                      label: "Deploy",
                      icon: "upload",
                      refusal: refusal ?? (shareOf(version.id) === 100 ? "it has all requests" : undefined),
                      onSelect: () => setChosen({ version, isBack: false }),
                    },
                  ]}
                />
              )}
            />
          </Card>
        )}
      </Loaded>
      <Loaded of={deployments}>
        {(data) => <Deployments list={data.deployments} versions={versions.data?.items ?? []} />}
      </Loaded>
      {chosen !== undefined && (
        <Deploy place={place} {...chosen} current={current} onClose={() => setChosen(undefined)} />
      )}
    </div>
  );
}

/** The action that compares a version with the one before it, or the first one with the newest. */
function comparing(version: Version, versions: readonly Version[]): MenuItem {
  const older = versions.find(({ number }) => number < version.number);
  const [from, to] = older === undefined ? [version, versions[0]!] : [older, version];
  const other = older ?? to;
  return {
    label: other === version ? "Compare" : `Compare with version ${other.number}`,
    icon: "copy",
    refusal: other === version ? "there is no other version" : undefined,
    onSelect: () => setSearch({ from: from.id, to: to.id }, false),
  };
}

/** The version deployed last of those that are older than all that run now: after a roll back, not the one left. */
function earlierOf(versions: readonly Version[], deployments: readonly Deployment[]): Version | undefined {
  const deployed = deployments.map((deployment) =>
    versions.filter(({ id }) => deployment.versions.some(({ version_id }) => version_id === id)),
  );
  const newest = Math.max(...(deployed[0] ?? []).map(({ number }) => number));
  return deployed.flat().find(({ number }) => number < newest);
}

interface RollBackProps {
  /** An older version that was deployed before. */
  to: Version | undefined;
  refusal: string | undefined;
  onPress: (version: Version) => void;
}

const RollBack = ({ to, refusal, onPress }: RollBackProps) => (
  <Button
    icon="refresh"
    refusal={refusal ?? (to === undefined ? "no earlier version was deployed" : undefined)}
    onPress={() => to !== undefined && onPress(to)}
  >
    {to === undefined ? "Roll back" : `Roll back to version ${to.number}`}
  </Button>
);

const Deployments = ({
  list,
  versions: known,
}: {
  list: readonly Deployment[];
  versions: readonly Version[];
}) => (
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
                .map(({ version_id, percentage }) => `${nameIn(known, version_id)} ${percentage} %`)
                .join(", "),
          },
          { title: "By", isExtra: true, cell: ({ author_email }) => author_email },
          { title: "When", cell: ({ created_on }) => <Time at={created_on} /> },
        ]}
      />
    )}
  </Card>
);

/** A version by its number, which people know, and its id. */
function nameIn(versions: readonly Version[], id: string): string {
  const number = versions.find((version) => version.id === id)?.number;
  return number === undefined ? shortId(id) : `${number} · ${shortId(id)}`;
}

interface DeployProps extends TabProps {
  version: Version;
  /** Whether the version was deployed before. */
  isBack: boolean;
  current: Deployment | undefined;
  onClose: () => void;
}

/** Gives a version a share of the requests. The version with the most requests now keeps the rest. */
function Deploy({ place, version, isBack, current, onClose }: DeployProps) {
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
      title={`${isBack ? "Roll back to" : "Deploy"} version ${version.number}`}
      call={{ op, params: place.params, body: { strategy: "percentage", versions } }}
      submit={isBack ? "Roll back" : "Deploy"}
      done="The version was deployed"
      refusal={isShare ? undefined : "the share is a number from 1 to 100"}
      invalidates={[place.path]}
      onClose={onClose}
    >
      {() => (
        <TextField
          label="Share of requests (%)"
          type="number"
          value={share}
          onChange={setShare}
          hint={
            other === undefined
              ? "No other version is deployed."
              : percentage < 100
                ? `Version ${shortId(other)} has the rest.`
                : "With less than 100, the version that is deployed now gets the rest."
          }
          isNarrow
          autofocus
        />
      )}
    </FormDialog>
  );
}
