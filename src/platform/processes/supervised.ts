import type { Config } from "../config/settings.ts";

/** The orders of the supervisor to a process that it starts: a variable of the environment, as JSON. */
export interface Supervised {
  role: "main" | "edge";
  /** Tells the edge processes of one supervisor apart. */
  id: number;
  /** Holds the sockets through which the processes talk. Only their user may enter it. */
  folder: string;
  supervisorPid: number;
  /** For main: edge processes that serve already, because another main process has served them. */
  serving: number;
  /** The addresses of all listeners, with the ports that were bound. */
  addresses: Partial<Config>;
}

/** Not a setting: only the supervisor sets it. */
export const supervisedVariable = "EDGE_SUPERVISED";

/** How the supervisor started this process; undefined if none did. Removes the variable. */
export function takeSupervised(environment: NodeJS.ProcessEnv): Supervised | undefined {
  const text = environment[supervisedVariable];
  delete environment[supervisedVariable];
  if (text === undefined || process.channel === undefined) return undefined;
  return JSON.parse(text) as Supervised;
}

/** From a supervised process to its supervisor. */
export type ToSupervisor =
  /** It accepts connections. `dns` is the address of main's name server. */
  | { is: "ready"; dns?: string }
  /** The edge process with this id does not answer. */
  | { is: "stalled"; id: number }
  | { is: "alive" };

/** Tells the supervisor something. Without one, nothing happens. */
export const tellSupervisor = (message: ToSupervisor): void => {
  if (process.connected) process.send?.(message, undefined, undefined, () => {}); // a supervisor that ends hears nothing
};
