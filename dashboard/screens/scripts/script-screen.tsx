import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { useRefusal } from "../../core/permissions.ts";
import { navigate, useSearch } from "../../core/router.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Page } from "../../parts/layout.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Failure } from "../../parts/states.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { LiveLog } from "../logs/live-log.tsx";
import { Addresses, MainAddress, useWorker, usersOf } from "./addresses.tsx";
import { AssetsTab } from "./assets.tsx";
import { CodeTab } from "./code.tsx";
import { Schedules } from "./schedules.tsx";
import { accountScript, one, type ScriptSettings } from "./script.ts";
import { Secrets } from "./secrets.tsx";
import { Settings } from "./settings.tsx";
import { Versions } from "./versions.tsx";

const tabs = [
  { key: "code", name: "Code" },
  { key: "versions", name: "Versions" },
  { key: "settings", name: "Settings" },
  { key: "secrets", name: "Secrets" },
  { key: "schedules", name: "Schedules" },
  { key: "assets", name: "Assets" },
  { key: "logs", name: "Live logs" },
] as const;
type Tab = (typeof tabs)[number]["key"];

/** One script: its code, versions and deployments, settings, secrets, schedules and live logs. */
export default function ScriptScreen({ account, params }: ScreenProps) {
  const name = params["script"]!;
  const place = accountScript(account, name);
  const settings = useGet<ScriptSettings>(`${place.path}/settings`);
  const worker = useWorker(place);
  const [chosen, setTab] = useSearch("tab", "code");
  const tab: Tab = tabs.find(({ key }) => key === chosen)?.key ?? "code";
  const [isDeleting, setDeleting] = useState(false);
  const refusal = useRefusal()(`DELETE ${one}`);
  const users = worker.data && usersOf(worker.data);
  const missing = settings.data === undefined && !settings.isLoading ? settings.failure : undefined;
  return (
    <Page
      title={name}
      up={{ name: "Scripts", path: `/${account}/scripts` }}
      about={worker.data && <MainAddress of={worker.data} />}
      actions={
        <Menu
          label="More"
          items={[
            {
              label: "Delete the script",
              icon: "trash",
              kind: "bad",
              refusal,
              onSelect: () => setDeleting(true),
            },
          ]}
        />
      }
    >
      {missing !== undefined ? (
        <Failure failure={missing} onRetry={settings.reload} />
      ) : (
        <Tabs label={`Parts of ${name}`} tabs={tabs} current={tab} onChange={setTab}>
          {tab === "code" && <CodeTab place={place} />}
          {tab === "versions" && <Versions place={place} />}
          {tab === "settings" && (
            <div class="stack">
              <Addresses account={account} place={place} worker={worker} />
              <Settings place={place} settings={settings} />
            </div>
          )}
          {tab === "secrets" && <Secrets place={place} />}
          {tab === "schedules" && <Schedules place={place} />}
          {tab === "assets" && <AssetsTab place={place} />}
          {tab === "logs" && <LiveLog op={`POST ${one}/tails`} params={place.params} />}
        </Tabs>
      )}
      {isDeleting && (
        <Confirm
          title={`Delete ${name}`}
          submit="Delete"
          typed={name}
          call={{ op: `DELETE ${one}`, params: place.params }}
          done="The script was deleted"
          invalidates={[place.list]}
          onDone={() => navigate(`/${account}/scripts`)}
          onClose={() => setDeleting(false)}
        >
          <p>Its versions, secrets and schedules are deleted with it.</p>
          {users !== undefined && <p>Still in use by: {users}.</p>}
        </Confirm>
      )}
    </Page>
  );
}
