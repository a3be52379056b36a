import { forms } from "./forms.ts";
import { choice, type Setting } from "./setting.ts";

/** Settings of a node: its data, its listeners and its log. */
export const nodeSettings = {
  dataDir: {
    kind: "text",
    flag: "data-dir",
    env: "SELVEDGE_DATA_DIR",
    default: "./data",
    describe: "folder for the database and blobs",
  },
  ephemeral: {
    kind: "flag",
    flag: "ephemeral",
    env: "SELVEDGE_EPHEMERAL",
    default: false,
    describe: "keep all data in memory and lose it at exit",
  },
  readyFile: {
    kind: "text",
    flag: "ready-file",
    env: "SELVEDGE_READY_FILE",
    describe:
      "file to write with the addresses of all listeners once they accept connections; removed at the start and the stop",
  },
  apiListen: {
    kind: "address",
    flag: "api-listen",
    env: "SELVEDGE_API_LISTEN",
    default: "127.0.0.1:8787",
    describe: "address of the management API",
  },
  edgeListen: {
    kind: "address",
    flag: "edge-listen",
    env: "SELVEDGE_EDGE_LISTEN",
    default: "127.0.0.1:8080",
    describe: "address of the edge for HTTP",
  },
  edgeTlsListen: {
    kind: "address",
    flag: "edge-tls-listen",
    env: "SELVEDGE_EDGE_TLS_LISTEN",
    describe: "address of the edge for HTTP/1.1 and HTTP/2 over TLS (default: no listener)",
  },
  edgeProcesses: {
    kind: "count",
    min: 0,
    max: 64,
    flag: "edge-processes",
    env: "SELVEDGE_EDGE_PROCESSES",
    default: 0,
    describe:
      "processes that serve visitors, in addition to a main process for everything else and a supervisor (0: one process does everything)",
  },
  metricsListen: {
    kind: "address",
    flag: "metrics-listen",
    env: "SELVEDGE_METRICS_LISTEN",
    describe: "address of the metrics for Prometheus, at /metrics (default: no listener)",
  },
  healthListen: {
    kind: "address",
    flag: "health-listen",
    env: "SELVEDGE_HEALTH_LISTEN",
    describe:
      "address of a listener for /healthz and /readyz only, for probes; it answers from the beginning of the start (default: only the API listener answers them)",
  },
  nodeListen: {
    kind: "address",
    flag: "node-listen",
    env: "SELVEDGE_NODE_LISTEN",
    describe:
      "address at which the other nodes of the installation reach this one, for Durable Objects and D1 on PostgreSQL (default: no listener, and no objects on PostgreSQL)",
  },
  processStartSeconds: {
    kind: "count",
    min: 1,
    max: 3600,
    flag: "process-start-seconds",
    env: "SELVEDGE_PROCESS_START_SECONDS",
    default: 60,
    describe:
      "with --edge-processes, the time that each process has to become ready, in addition to --database-wait-seconds",
  },
  lameDuckSeconds: {
    kind: "count",
    min: 0,
    max: 3600,
    flag: "lame-duck-seconds",
    env: "SELVEDGE_LAME_DUCK_SECONDS",
    default: 0,
    describe: "how long a stopping node still accepts connections, with /readyz at 503",
  },
  dnsListen: {
    kind: "address",
    flag: "dns-listen",
    env: "SELVEDGE_DNS_LISTEN",
    default: "127.0.0.1:8053",
    describe: "address of the name server, UDP and TCP",
  },
  edgeAddresses: {
    kind: "list",
    form: forms.address,
    flag: "edge-addresses",
    env: "SELVEDGE_EDGE_ADDRESSES",
    default: [],
    describe:
      "IPv4 and IPv6 addresses in DNS answers for proxied names (default: the addresses of the edge's listener)",
  },
  databaseUrl: {
    kind: "text",
    form: forms.databaseUrl,
    flag: "database-url",
    env: "SELVEDGE_DATABASE_URL",
    describe: "URL of a PostgreSQL database, postgres://… (default: a SQLite file in the data folder)",
    secret: true,
  },
  databaseTimeoutSeconds: {
    kind: "count",
    min: 1,
    max: 3600,
    flag: "database-timeout-seconds",
    env: "SELVEDGE_DATABASE_TIMEOUT_SECONDS",
    default: 30,
    describe: "timeout of a PostgreSQL query, and of the wait for a connection",
  },
  databaseWaitSeconds: {
    kind: "count",
    min: 0,
    max: 3600,
    flag: "database-wait-seconds",
    env: "SELVEDGE_DATABASE_WAIT_SECONDS",
    default: 5,
    describe: "how long a start waits for a PostgreSQL server that does not accept connections yet",
  },
  staleAfterSeconds: {
    kind: "count",
    min: 1,
    max: 3600,
    flag: "stale-after-seconds",
    env: "SELVEDGE_STALE_AFTER_SECONDS",
    default: 10,
    describe: "how far a node may be behind the changes of other nodes before /readyz is 503",
  },
  blobUrl: {
    kind: "text",
    flag: "blob-url",
    env: "SELVEDGE_BLOB_URL",
    describe:
      "store for images, assets and large values: files (in the data folder), postgres (in the database; small installations), or s3://BUCKET[/PREFIX]?endpoint=URL&region=NAME (default: files; with both --ephemeral and PostgreSQL: postgres)",
  },
  blobAccessKeyId: {
    kind: "text",
    flag: "blob-access-key-id",
    env: "SELVEDGE_BLOB_ACCESS_KEY_ID",
    describe: "access key id for an S3 store (default: AWS_ACCESS_KEY_ID in the environment)",
  },
  blobSecretAccessKey: {
    kind: "text",
    flag: "blob-secret-access-key",
    env: "SELVEDGE_BLOB_SECRET_ACCESS_KEY",
    describe: "secret access key for an S3 store (default: AWS_SECRET_ACCESS_KEY in the environment)",
    secret: true,
  },
  blobCacheMegabytes: {
    kind: "count",
    min: 1,
    max: 10_000_000,
    flag: "blob-cache-megabytes",
    env: "SELVEDGE_BLOB_CACHE_MEGABYTES",
    default: 1024,
    describe: "disk space for copies of blobs in the data folder, if --blob-url is not files",
  },
  logLevel: {
    ...choice(["debug", "info", "warn", "error"]),
    flag: "log-level",
    env: "SELVEDGE_LOG_LEVEL",
    default: "info",
    describe: "minimum level of log messages",
  },
} as const satisfies Record<string, Setting>;
