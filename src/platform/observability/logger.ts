import { pino, destination, type Logger } from "pino";

/**
 * Structured logs on standard error, one JSON object for each line. Standard output is reserved for the
 * command's result.
 */
export function createLogger(level: string): Logger {
  const output = destination({ fd: 2, sync: false, minLength: 0 });
  output.on("error", () => {}); // a full disk, or a closed reader: serving continues without a log
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: ["headers.authorization", "headers.cookie", 'headers["x-auth-key"]'],
    },
    output,
  );
}
