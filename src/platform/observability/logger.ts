import { pino, type Logger } from "pino";
import { escapeControls } from "./control-characters.ts";
import { LogWriter } from "./log-writer.ts";

/** One for all loggers of the process: their lines stay in order, and each writer listens for the exit. */
let standardError: LogWriter | undefined;

/**
 * Structured logs on standard error, one JSON object for each line. Standard output is reserved for the
 * command's result.
 */
export function createLogger(level: string): Logger {
  const writer = (standardError ??= new LogWriter(2));
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: ["headers.authorization", "headers.cookie", 'headers["x-auth-key"]'],
    },
    // Messages of customers' code are in lines, which people read on terminals.
    { write: (line) => writer.write(escapeControls(line)) },
  );
}
