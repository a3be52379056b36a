import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { useRefusal } from "../../core/permissions.ts";
import { navigate, useSearch } from "../../core/router.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Page } from "../../parts/layout.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Loaded } from "../../parts/states.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { LiveLog } from "../logs/live-log.tsx";
import { CodeTab } from "../scripts/code.tsx";
import { customerScript, type ScriptSettings } from "../scripts/script.ts";
import { Secrets } from "../scripts/secrets.tsx";
import { Settings } from "../scripts/settings.tsx";
import { placeOf } from "./namespace.ts";
import { CustomerUsage } from "./usage-of-customer.tsx";

const tabs = [
  { key: "code", name: "Code" },
  { key: "settings", name: "Settings" },
  { key: "secrets", name: "Secrets" },
  { key: "logs", name: "Live logs" },
] as const;
type Tab = (typeof tabs)[number]["key"];

/** The script of one customer: its code, settings, limits, tags, secrets and live logs. */
export default function CustomerScreen({ account, params }: ScreenProps) {
  const { namespace = "", script = "" } = params;
  const place = customerScript(account, namespace, script);
  const settings = useGet<ScriptSettings>(`${place.path}/settings`);
  const [chosen, setTab] = useSearch("tab", "code");
  const tab: Tab = tabs.find(({ key }) => key === chosen)?.key ?? "code";
  const [isDeleting, setDeleting] = useState(false);
  const op = `DELETE ${place.one}`;
  const refusal = useRefusal()(op);
  return (
    <Page
      title={script}
      up={{ name: namespace, path: placeOf(account, namespace) }}
      about={settings.data?.tags.join(" · ")}
      actions={
        <Menu
          label="More"
          items={[
            {
              label: "Delete the customer's script",
              icon: "trash",
              kind: "bad",
              refusal,
              onSelect: () => setDeleting(true),
            },
          ]}
        />
      }
    >
      <Loaded of={settings}>
        {() => (
          <div class="stack">
            <CustomerUsage place={place} />
            <Tabs label={`Parts of ${script}`} tabs={tabs} current={tab} onChange={setTab}>
              {tab === "code" && <CodeTab place={place} />}
              {tab === "settings" && <Settings place={place} settings={settings} />}
              {tab === "secrets" && <Secrets place={place} />}
              {tab === "logs" && <LiveLog op={`POST ${place.one}/tails`} params={place.params} />}
            </Tabs>
          </div>
        )}
      </Loaded>
      {isDeleting && (
        <Confirm
          title={`Delete ${script}`}
          submit="Delete"
          typed={script}
          call={{ op, params: place.params }}
          done="The customer's script was deleted"
          invalidates={[place.list]}
          onDone={() => navigate(placeOf(account, namespace))}
          onClose={() => setDeleting(false)}
        >
          <p>Its code, secrets and assets are deleted. Other customers are untouched.</p>
        </Confirm>
      )}
    </Page>
  );
}
