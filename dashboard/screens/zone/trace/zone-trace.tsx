import { useZone } from "../../../core/zone.ts";
import type { ScreenProps } from "../../../shell/route.ts";
import { TraceScreen } from "../../trace/trace-screen.tsx";

/** The trace of a request to the zone. */
export default function ZoneTrace({ account }: ScreenProps) {
  return <TraceScreen account={account} url={`https://${useZone().name}/`} />;
}
