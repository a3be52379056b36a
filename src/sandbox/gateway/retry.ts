import type { RunOptions } from "../cell.ts";
import type { CellBody, CellRequest } from "./exchange.ts";

/** Safe methods (RFC 9110, 9.2.1). */
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** Whether a request may be sent again even if a script has begun to handle it. */
export const isRetryable = ({ method, body }: CellRequest): boolean =>
  body === null && safeMethods.has(method);

/** Whether a part of the answer was sent. */
export const hasAnswered = (answer: RunOptions["answer"]): boolean =>
  "socket" in answer ? answer.socket.bytesWritten > 0 : answer.response.headersSent;

export const withBody = (options: RunOptions, body: CellBody | null): RunOptions => ({
  ...options,
  request: { ...options.request, body },
});
