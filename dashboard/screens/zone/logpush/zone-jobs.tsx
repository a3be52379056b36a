import { useZone } from "../../../core/zone.ts";
import { ofZone } from "../../logpush/job.ts";
import { Jobs } from "../../logpush/jobs.tsx";

/** The jobs that upload requests and DNS queries of the zone. */
export default function ZoneJobs() {
  return <Jobs of={ofZone(useZone().id)} />;
}
