import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useAction } from "../../../core/action.ts";
import { useGet } from "../../../core/cache.ts";
import { count } from "../../../core/format.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { href, navigate } from "../../../core/router.ts";
import { useZone, type Zone } from "../../../core/zone.ts";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Card, Copyable, Facts, Figure, Notice, Page, Time } from "../../../parts/layout.tsx";
import { Menu } from "../../../parts/menu.tsx";
import { Loaded } from "../../../parts/states.tsx";
import type { ScreenProps } from "../../../shell/route.ts";
import { useSettings, ZoneSetting } from "../setting.tsx";

const sslModes = [
  { value: "off", label: "Off: no TLS to the origin, none to visitors" },
  { value: "flexible", label: "Flexible: TLS to visitors only" },
  { value: "full", label: "Full: TLS to the origin, any certificate" },
  { value: "strict", label: "Strict: TLS to the origin, valid certificate" },
];

/** Until then, the page asks for no name servers: under static activation a zone is active a second after its creation. */
const decidedMs = 5000;
/** The frame reads a pending zone again and again, so the answer changes by itself. */
const isNew = ({ created_on }: Zone): boolean => Date.now() - Date.parse(created_on) < decidedMs;

/** The zone's state, name servers and settings. */
export default function ZoneOverview({ account }: ScreenProps) {
  const zone = useZone();
  const refusal = useRefusal();
  const [isDeleting, setDeleting] = useState(false);
  const pause = useAction({
    done: zone.paused ? "The zone is served again" : "The zone is paused",
    invalidates: ["/zones"],
    tellsFailure: true,
  });
  const check = useAction({
    done: "The name servers are checked",
    invalidates: ["/zones"],
    tellsFailure: true,
  });
  const params = { zone_id: zone.id };
  const edit = refusal("PATCH /zones/{zone_id}");
  return (
    <Page
      title="Overview"
      actions={
        <>
          {zone.status === "pending" && (
            <Button
              icon="refresh"
              isBusy={check.isBusy}
              refusal={edit}
              onPress={() => void check.run({ op: "PUT /zones/{zone_id}/activation_check", params })}
            >
              Check the name servers
            </Button>
          )}
          <Button
            icon={zone.paused ? "play" : "pause"}
            isBusy={pause.isBusy}
            refusal={edit}
            onPress={() =>
              void pause.run({ op: "PATCH /zones/{zone_id}", params, body: { paused: !zone.paused } })
            }
          >
            {zone.paused ? "Resume" : "Pause"}
          </Button>
          <Menu
            label="More"
            items={[
              {
                label: "Delete the zone",
                icon: "trash",
                kind: "bad",
                refusal: refusal("DELETE /zones/{zone_id}"),
                onSelect: () => setDeleting(true),
              },
            ]}
          />
        </>
      }
    >
      <div class="stack">
        {zone.status === "pending" &&
          (isNew(zone) ? (
            <Notice>The platform decides now whether {zone.name} is active …</Notice>
          ) : (
            <Notice tone="warn">
              Set the name servers below at the registrar of {zone.name}. The zone becomes active when the
              public DNS names them.
            </Notice>
          ))}
        <Figures account={account} />
        <div class="cards">
          <Card title="Name servers">
            <ul class="plain-list">
              {[...zone.name_servers, ...(zone.vanity_name_servers ?? [])].map((name) => (
                <li key={name}>
                  <Copyable text={name} />
                </li>
              ))}
            </ul>
          </Card>
          <Card title="Zone">
            <Facts
              facts={[
                ["Id", <Copyable key="id" text={zone.id} />],
                ["Plan", zone.plan.name],
                ["Type", zone.type],
                ["Created", <Time key="created" at={zone.created_on} />],
                [
                  "Active since",
                  zone.activated_on === null ? "–" : <Time key="active" at={zone.activated_on} />,
                ],
              ]}
            />
          </Card>
        </div>
        <Settings />
      </div>
      {isDeleting && (
        <Confirm
          title={`Delete ${zone.name}`}
          typed={zone.name}
          submit="Delete the zone"
          call={{ op: "DELETE /zones/{zone_id}", params }}
          done={`${zone.name} was deleted`}
          onDone={() => navigate(`/${account}/zones`)}
          onClose={() => setDeleting(false)}
        >
          <p>Its records, rules, certificates and routes are deleted with it. This cannot be undone.</p>
        </Confirm>
      )}
    </Page>
  );
}

function Figures({ account }: { account: string }) {
  const zone = useZone();
  const usage = useGet<{ record_usage: number; record_quota: number | null }>(
    `/zones/${zone.id}/dns_records/usage`,
  );
  const packs = useGet<{ status: string }[]>(`/zones/${zone.id}/ssl/certificate_packs`);
  const routes = useGet<unknown[]>(`/zones/${zone.id}/workers/routes`);
  const at = `/${account}/zones/${zone.name}`;
  const active = packs.data?.filter(({ status }) => status === "active").length;
  const of = (name: string, value: number | undefined, path: string, note?: ComponentChildren) => (
    <Figure
      name={name}
      value={<a href={href(`${at}/${path}`)}>{value === undefined ? "–" : count(value)}</a>}
      note={note}
    />
  );
  return (
    <div class="figures">
      {of(
        "DNS records",
        usage.data?.record_usage,
        "dns",
        usage.data?.record_usage === 0 ? (
          <a href={href(`${at}/dns`)}>add some, or import a zone file</a>
        ) : usage.data?.record_quota == null ? (
          "no limit"
        ) : (
          `of ${count(usage.data.record_quota)}`
        ),
      )}
      {of(
        "Active certificates",
        active,
        "tls",
        packs.data === undefined ? "" : packs.data.length === 0 ? "none ordered" : `of ${packs.data.length}`,
      )}
      {of("Routes to scripts", routes.data?.length, "routes")}
    </div>
  );
}

function Settings() {
  const settings = useSettings();
  return (
    <Card title="Settings">
      <Loaded of={settings} rows={3}>
        {(list) => {
          const of = (id: string) => list.find((each) => each.id === id);
          return (
            <div class="stack">
              <ZoneSetting
                setting={of("ssl")}
                label="Encryption"
                hint="Between visitors, the edge and the origin."
                options={sslModes}
              />
              <ZoneSetting
                setting={of("always_use_https")}
                label="Always use HTTPS"
                hint="Requests over plain HTTP are redirected."
              />
              <ZoneSetting
                setting={of("bot_management")}
                label="Bot management"
                hint="Scripts and rules see a score of each request."
              />
              <ZoneSetting
                setting={of("transformations")}
                label="Transformations of pictures"
                hint="Paths below /cdn-cgi/image/ resize and convert pictures."
                options={[
                  { value: "off", label: "Off" },
                  { value: "on", label: "On: pictures of this zone" },
                  { value: "open", label: "Open: pictures of any origin" },
                ]}
              />
            </div>
          );
        }}
      </Loaded>
    </Card>
  );
}
