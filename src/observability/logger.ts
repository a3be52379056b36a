import { pino, destination, type Logger } from "pino";

/** Structured logs, one JSON object a line, on standard error: standard output belongs to the command's answer. */
export function createLogger(level: string): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: ["headers.authorization", "headers.cookie", 'headers["x-auth-key"]'],
    },
    destination({ fd: 2, sync: false, minLength: 0 }),
  );
}
