interface Alert {
  name: string;
  expression: string;
  /** How long it must be true. */
  for?: string;
  severity: "page" | "ticket";
  /** In the language of Prometheus' templates. */
  summary: string;
  /** The operator's first step. */
  action: string;
}

/** Limits an expression to processes of the platform, because Prometheus may scrape others. */
const ours = "and on (instance, job) selvedge_build_info";
/** The share of responses with 5xx within a time. */
const errors = (time: string): string =>
  `sum(rate(selvedge_edge_requests_total{status=~"5.."}[${time}])) / sum(rate(selvedge_edge_requests_total[${time}]))`;
/** The share of a month's requests that may fail. */
const budget = 0.001;
const burns = (times: number, long: string, short: string): string =>
  `${errors(long)} > ${times} * ${budget} and ${errors(short)} > ${times} * ${budget}`;

const alerts: readonly Alert[] = [
  {
    name: "SelvedgeErrorBudgetFast",
    expression: burns(14.4, "1h", "5m"),
    severity: "page",
    summary: "{{ $value | humanizePercentage }} of the visitors' requests fail with 5xx",
    action:
      "Find the zone and the status in selvedge_edge_requests_total, then the rays of the requests in the access log.",
  },
  {
    name: "SelvedgeErrorBudgetSlow",
    expression: burns(6, "6h", "30m"),
    severity: "ticket",
    summary: "{{ $value | humanizePercentage }} of the visitors' requests fail with 5xx",
    action:
      "Find the zone and the status in selvedge_edge_requests_total, then the rays of the requests in the access log.",
  },
  {
    name: "SelvedgeNodeIsStale",
    expression: "selvedge_change_lag_seconds > 10",
    for: "1m",
    severity: "page",
    summary: "{{ $labels.instance }} lacks changes of the last {{ $value | humanizeDuration }}",
    action: "Check its connection to PostgreSQL: see /readyz and the log.",
  },
  {
    name: "SelvedgeCertificateExpires",
    expression: "selvedge_certificate_expiry_timestamp_seconds - time() < 14 * 86400",
    for: "1h",
    severity: "ticket",
    summary: "The certificate of {{ $labels.host }} expires in {{ $value | humanizeDuration }}",
    action: "Order its certificate pack again, or upload a new certificate.",
  },
  {
    name: "SelvedgeCertificateFails",
    expression: "selvedge_certificate_packs_failing > 0",
    for: "1h",
    severity: "ticket",
    summary: "The last attempt to issue {{ $value }} certificate packs failed",
    action: "List the certificate packs of the zones: each shows its error.",
  },
  {
    name: "SelvedgeBackupIsLate",
    expression:
      "time() - selvedge_backup_last_success_timestamp_seconds > 2 * selvedge_backup_interval_seconds and time() - process_start_time_seconds > 2 * selvedge_backup_interval_seconds",
    severity: "page",
    summary: "The newest backup of {{ $labels.instance }} is {{ $value | humanizeDuration }} old",
    action: 'Find the cause in the log, in the lines "the periodic backup failed".',
  },
  {
    name: "SelvedgeBackupLogIsLate",
    expression: "time() - selvedge_backup_log_shipped_timestamp_seconds > 300",
    for: "5m",
    severity: "page",
    summary:
      "The commits of the last {{ $value | humanizeDuration }} have not been shipped to the backup log",
    action: "Check the target of --backup-folder: its free space, its credentials, and the connection to it.",
  },
  {
    name: "SelvedgeLoopIsBlocked",
    expression: `nodejs_eventloop_lag_p99_seconds > 0.2 ${ours}`,
    for: "5m",
    severity: "ticket",
    summary: "The event loop of {{ $labels.instance }} has a p99 lag of {{ $value }} s",
    action: "Check the load of the machine, and look for large API calls; then take a CPU profile.",
  },
  {
    name: "SelvedgeQueueIsStuck",
    expression: "max by (account, queue) (selvedge_queue_oldest_message_seconds) > 600",
    for: "5m",
    severity: "ticket",
    summary:
      "The oldest message of the queue {{ $labels.queue }} has waited for {{ $value | humanizeDuration }}",
    action: "Check its consumer: exceptions in a live log, its concurrency, its retries.",
  },
  {
    name: "SelvedgeWorkflowsAreLate",
    expression: "selvedge_workflow_lag_seconds > 60",
    for: "5m",
    severity: "ticket",
    summary: "Workflows of {{ $labels.instance }} wake {{ $value | humanizeDuration }} late",
    action: "Check the database and the load of the machine.",
  },
  {
    name: "SelvedgeWalGrows",
    expression: "selvedge_storage_wal_bytes > 1e9",
    for: "5m",
    severity: "ticket",
    summary: "The write-ahead log of SQLite at {{ $labels.instance }} has {{ $value | humanize1024 }}B",
    action: "Look for a program that keeps a read transaction open, such as a copy of the database.",
  },
  {
    name: "SelvedgeDiskFillsUp",
    expression: 'predict_linear(selvedge_disk_bytes{of="free"}[1h], 4 * 3600) < 0',
    for: "15m",
    severity: "page",
    summary: "The disk of {{ $labels.instance }} will be full within four hours",
    action: "Free some space, or enlarge the disk. On a full disk, writes fail and reads continue.",
  },
  {
    name: "SelvedgeWritesFail",
    expression: "increase(selvedge_storage_errors_total[5m]) > 0",
    for: "5m",
    severity: "page",
    summary: "The database of {{ $labels.instance }} refuses writes: {{ $labels.cause }}",
    action: "Check the disk (disk_full), or PostgreSQL (unavailable).",
  },
  {
    name: "SelvedgeRestarts",
    expression: `changes(process_start_time_seconds[1h]) > 3 ${ours} or sum by (instance, job) (increase(selvedge_process_restarts_total[1h])) > 3`,
    severity: "ticket",
    summary: "Processes of {{ $labels.instance }} have ended {{ $value }} times within an hour",
    action: "The log has the last error of each process. Check the memory of the machine.",
  },
  {
    name: "SelvedgeCellsEnd",
    expression:
      'sum by (instance, job) (increase(selvedge_cell_ends_total{reason=~"crashed|killed|memory"}[1h])) > 20',
    severity: "ticket",
    summary: "{{ $value }} processes of scripts of {{ $labels.instance }} have ended within an hour",
    action: 'Find the scripts in the log, in the lines "a script exceeded its limits".',
  },
  {
    name: "SelvedgeUncaughtException",
    expression: "increase(selvedge_uncaught_exceptions_total[1h]) > 0",
    severity: "ticket",
    summary: "An uncaught {{ $labels.kind }} at {{ $labels.instance }}",
    action: "Report it, with the output of selvedge doctor --report.",
  },
  {
    name: "SelvedgeBlobIsMissing",
    expression: "increase(selvedge_blob_missing_total[1h]) > 0",
    severity: "page",
    summary: "The blob store lacks content that the database refers to",
    action: "The log names the missing blob. Restore it from a backup.",
  },
  {
    name: "SelvedgeLogLinesDropped",
    expression: "increase(selvedge_log_dropped_total[15m]) > 0",
    severity: "ticket",
    summary: "Lines of the {{ $labels.log }} log are missing",
    action: "Check the disk of the log, or log only a share of requests with --access-log-one-in.",
  },
  {
    name: "SelvedgeLogpushFails",
    expression: "selvedge_logpush_failing_jobs > 0",
    for: "15m",
    severity: "ticket",
    summary: "{{ $value }} Logpush jobs of {{ $labels.instance }} cannot upload",
    action: "Read error_message of the jobs. A job is disabled after --logpush-disable-after-hours.",
  },
  {
    name: "SelvedgeLogpushEventsDropped",
    expression: "increase(selvedge_logpush_dropped_events_total[15m]) > 0",
    severity: "ticket",
    summary:
      "Events of the Logpush data set {{ $labels.data_set }} of the account {{ $labels.account }} are missing",
    action: "Look for failing jobs, and check the disk. --logpush-spool-megabytes limits the waiting events.",
  },
  {
    name: "SelvedgePathIsDown",
    expression: "selvedge_smart_routing_path_ejected == 1",
    for: "5m",
    severity: "ticket",
    summary: "Smart routing has stopped using the path {{ $labels.path }} of {{ $labels.zone }}",
    action: "Check the origin or the relay at this address.",
  },
];

/** packaging/prometheus/alerts.yaml: rules for Prometheus. JSON strings are strings of YAML. */
export function alertRules(): string {
  const rules = alerts.flatMap((alert) => [
    `      - alert: ${alert.name}`,
    `        expr: ${JSON.stringify(alert.expression)}`,
    ...(alert.for === undefined ? [] : [`        for: ${alert.for}`]),
    "        labels:",
    `          severity: ${alert.severity}`,
    "        annotations:",
    `          summary: ${JSON.stringify(alert.summary)}`,
    `          description: ${JSON.stringify(alert.action)}`,
  ]);
  return ["# Written by npm run generate.", "groups:", "  - name: selvedge", "    rules:", ...rules, ""].join(
    "\n",
  );
}
