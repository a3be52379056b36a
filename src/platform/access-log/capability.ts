import { capability } from "../../capability.ts";
import { AccessLog } from "./access-log.ts";
import { defaultFields } from "./fields.ts";
import { timestamps } from "./line-format.ts";
import { declaration, type FieldName } from "./declaration.ts";
import { LineWriter } from "./line-writer.ts";
import type { Config } from "../config/settings.ts";

/** The logs of requests: at the edge, and of the management API. */
export const accessLogs = capability({
  name: "access logs",
  processes: "all",
  declares: declaration,
  needs: [],
  create({ config, logger }) {
    const writers = new Map<string, LineWriter>();
    const openLog = (target: string, oneIn: number): AccessLog => {
      // Both logs may have the same target.
      const lines =
        writers.get(target) ??
        new LineWriter(target, (error) => logger.warn({ err: error }, "lines of an access log are lost"));
      writers.set(target, lines);
      return new AccessLog({ lines, format: formatOf(config), oneIn });
    };
    return {
      /** Logpush reads its records, too. */
      edgeLog:
        config.accessLog === undefined ? new AccessLog() : openLog(config.accessLog, config.accessLogOneIn),
      apiLog: config.apiAccessLog === undefined ? undefined : openLog(config.apiAccessLog, 1),
      accessLogWriters: [...writers.values()],
    };
  },
  metrics: async ({ accessLogWriters }) => (await import("./metrics.ts")).accessLogMetrics(accessLogWriters),
  async reload({ accessLogWriters, logger }) {
    for (const lines of accessLogWriters) {
      await lines
        .reopen()
        .catch((error: unknown) =>
          logger.warn({ err: error }, "an access log could not be opened again; the old file stays in use"),
        );
    }
  },
  async close({ accessLogWriters }) {
    await Promise.all(accessLogWriters.map((lines) => lines.close()));
  },
});

const formatOf = ({ accessLogFields, accessLogTimestamps, colo, ...config }: Config) => ({
  fields: accessLogFields.length === 0 ? defaultFields : (accessLogFields as readonly FieldName[]),
  requestHeaders: config.accessLogRequestHeaders.map((name) => name.toLowerCase()),
  responseHeaders: config.accessLogResponseHeaders.map((name) => name.toLowerCase()),
  timestamp: timestamps[accessLogTimestamps],
  colo,
});
