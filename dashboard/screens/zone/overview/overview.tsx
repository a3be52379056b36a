import { useZone } from "../../../core/zone.ts";
import { Page } from "../../../parts/layout.tsx";

export default function ZoneOverview() {
  return <Page title={useZone().name}>…</Page>;
}
