import { useAction } from "../../../core/action.ts";
import { useGet } from "../../../core/cache.ts";
import { count } from "../../../core/format.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { useZone } from "../../../core/zone.ts";
import { AsCode } from "../../../code/as-code.tsx";
import { Switch } from "../../../parts/form.tsx";
import { Card, Figure, Page } from "../../../parts/layout.tsx";
import { Empty, Loaded } from "../../../parts/states.tsx";
import { ms, type Analytics, type Measured } from "./analytics.ts";
import { PathDiagram } from "./diagram.tsx";
import { PathTable } from "./quantiles.tsx";

const op = "PATCH /zones/{zone_id}/edge/smart_routing";
/** Minimum numbers of requests, and of direct ones, for a meaningful ratio. */
const [enough, enoughDirect] = [500, 10];
/** Origins, and paths of each, that are drawn; the table has all. */
const [diagramsMax, diagramPathsMax] = [4, 8];

/** 0.39 → "61 % faster" */
function gainOf(ratio: number): string {
  const percent = Math.round(Math.abs(1 - ratio) * 100);
  return percent === 0 ? "none" : `${percent} % ${ratio < 1 ? "faster" : "slower"}`;
}

/** The paths to origins, their times, and the gain over the direct one. */
export default function SmartRouting() {
  const zone = useZone();
  const path = `/zones/${zone.id}/edge/smart_routing`;
  const setting = useGet<{ value: "on" | "off"; editable: boolean }>(path);
  const isOn = setting.data?.value === "on";
  const analytics = useGet<Analytics>(isOn ? `${path}/analytics` : undefined, { everyMs: 2000 });
  const action = useAction({ done: "Smart routing was changed", invalidates: [path], tellsFailure: true });
  const refused = useRefusal()(op);
  const refusal = refused ?? (setting.data?.editable === false ? "not on this zone's plan" : undefined);
  const call = (value: string) => ({ op, params: { zone_id: zone.id }, body: { value } });
  return (
    <Page
      title="Smart routing"
      about="Requests take the path to the origin that answers first: direct, or through another node."
    >
      <div class="stack">
        <Loaded of={setting} rows={1}>
          {() => (
            <Card>
              <div class="setting">
                <Switch
                  label="Smart routing"
                  hint="A share of the requests measures the other paths."
                  isOn={isOn}
                  refusal={refusal}
                  onChange={(on) => void action.run(call(on ? "on" : "off"))}
                />
                <AsCode call={call(isOn ? "off" : "on")} />
              </div>
            </Card>
          )}
        </Loaded>
        {isOn ? (
          <Loaded of={analytics}>{(data) => <Measurements data={data} />}</Loaded>
        ) : (
          <Empty icon="route" title="Smart routing is off">
            Every request takes the direct path.
          </Empty>
        )}
      </div>
    </Page>
  );
}

function Measurements({ data }: { data: Analytics }) {
  return (
    <>
      <div class="figures">
        <Figure
          name="Median, chosen path"
          value={ms(data.smart.p50_ms)}
          note={`p99 ${ms(data.smart.p99_ms)}`}
        />
        <Figure
          name="Median, direct path"
          value={ms(data.direct.p50_ms)}
          note={`p99 ${ms(data.direct.p99_ms)}`}
        />
        <Figure
          name="Gain at the median"
          value={data.p50_ratio === null ? "–" : gainOf(data.p50_ratio)}
          note={
            data.p50_ratio !== null
              ? `of ${count(data.smart.requests)} requests`
              : `too few requests: ${count(data.smart.requests + data.direct.requests)} of ${enough}, ${count(data.direct.requests)} of ${enoughDirect} direct`
          }
        />
        <Figure
          name="Failed"
          value={count(data.failed_requests)}
          note={`${count(data.hedged_requests)} tried on two paths`}
        />
      </div>
      {data.paths.length === 0 ? (
        <Empty icon="route" title="No request has been measured yet" />
      ) : (
        <>
          {[...Map.groupBy(data.paths, ({ origin }) => origin)]
            .slice(0, diagramsMax)
            .map(([origin, paths]) => (
              <PathDiagram key={origin} paths={paths.slice(0, diagramPathsMax)} />
            ))}
          <PathTable paths={data.paths} />
          {data.smart.requests > 0 && <Histogram data={data} />}
        </>
      )}
    </>
  );
}

const [width, height] = [720, 140];

/** Both cumulative distributions: the share of requests that were answered within a time. */
function Histogram({ data }: { data: Analytics }) {
  const lineOf = ({ counts }: Measured): string => {
    const total = counts.reduce((sum, each) => sum + each, 0);
    if (total === 0) return "";
    let below = 0;
    const step = width / counts.length;
    return counts
      .map(
        (each, index) =>
          `${index === 0 ? `M0 ${height}` : ""} V${height - ((below += each) / total) * (height - 4)} H${(index + 1) * step}`,
      )
      .join("");
  };
  return (
    <Card title="Answered within">
      <svg
        class="distribution"
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label="Share of requests by time to the first byte, on the chosen and the direct path"
      >
        <path class="direct" d={lineOf(data.direct)} />
        <path class="smart" d={lineOf(data.smart)} />
      </svg>
      <div class="row faint">
        <span class="key smart">chosen</span>
        <span class="key direct">direct (dashed)</span>
        <span class="spacer" />
        <span>0 to {ms(data.ttfb_bounds_ms.at(-1) ?? 0)}, not to scale</span>
      </div>
    </Card>
  );
}
