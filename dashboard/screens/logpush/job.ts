/** A job that uploads events, as the API shows it. */
export interface Job {
  id: number;
  name: string;
  dataset: string;
  /** Without credentials. */
  destination_conf: string;
  enabled: boolean;
  error_message: string | null;
  last_complete: string | null;
  last_error: string | null;
  filter: string | null;
  output_options: { field_names: string[] };
}

/** An account or a zone, which has jobs for its own data sets. */
export interface Owner {
  /** As in paths of openapi.json. */
  op: string;
  params: Readonly<Record<string, string>>;
  /** Its path below /client/v4. */
  path: string;
  dataSets: readonly { value: string; label: string }[];
}

export const ofAccount = (account: string): Owner => ({
  op: "/accounts/{account_id}/logpush",
  params: { account_id: account },
  path: `/accounts/${account}/logpush`,
  dataSets: [
    { value: "workers_trace_events", label: "Runs of scripts" },
    { value: "audit_logs_v2", label: "Audit log" },
    { value: "audit_logs", label: "Audit log, first version" },
  ],
});

export const ofZone = (zone: string): Owner => ({
  op: "/zones/{zone_id}/logpush",
  params: { zone_id: zone },
  path: `/zones/${zone}/logpush`,
  dataSets: [
    { value: "http_requests", label: "Requests" },
    { value: "dns_logs", label: "DNS queries" },
  ],
});

/** The data set of a job in words. */
export const dataSetOf = ({ dataSets }: Owner, { dataset }: Job): string =>
  dataSets.find(({ value }) => value === dataset)?.label ?? dataset;

/** Whether the last upload failed. */
export const isFailing = ({ last_complete: complete, last_error: error }: Job): boolean =>
  error !== null && (complete === null || error > complete);
