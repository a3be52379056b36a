import type { Config } from "../config/settings.ts";

/** The supervisor's orders for a process at its start, as JSON in an environment variable. */
export interface Supervised {
  role: "main" | "edge";
  /** Identifies an edge process of the supervisor. */
  id: number;
  /** The folder with the sockets between the processes. Only their user has access. */
  folder: string;
  supervisorPid: number;
  /** For the main process: the number of edge processes that serve already, under an earlier main process. */
  serving: number;
  /** The addresses of all listeners, with the ports that were bound. */
  addresses: Partial<Config>;
}

/** Not a setting: only the supervisor sets it. */
export const supervisedVariable = "EDGE_SUPERVISED";

/** The supervisor's orders for this process; undefined without a supervisor. Removes the variable. */
export function takeSupervised(environment: NodeJS.ProcessEnv): Supervised | undefined {
  const text = environment[supervisedVariable];
  delete environment[supervisedVariable];
  if (text === undefined || process.channel === undefined) return undefined;
  return JSON.parse(text) as Supervised;
}

/** Messages from a supervised process to its supervisor. */
export type ToSupervisor =
  /** The process accepts connections. `dns` is the address of the main process's name server. */
  | { is: "ready"; dns?: string }
  /** The edge process with this id does not answer. */
  | { is: "stalled"; id: number }
  | { is: "alive" };

/** Sends a message to the supervisor. Does nothing without one. */
export const notifySupervisor = (message: ToSupervisor): void => {
  if (process.connected) process.send?.(message, undefined, undefined, () => {}); // ignores that the supervisor is ending
};
