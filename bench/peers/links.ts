import { startLink, type Way } from "../../test/helpers/links.ts";

/** Simulates slow links, in a process of its own so that no other work delays them. Messages set their properties. */
export interface LinkOrder {
  name: string;
  listen: string;
  to: { host: string; port: number };
}
export type Ways = Record<string, Record<string, Way>>;

const orders = JSON.parse(process.argv[2]!) as LinkOrder[];
/** By link, then by the source address of the connection, or "any". */
let ways: Ways = {};
process.on("message", (message) => {
  ways = message as Ways;
  process.send?.("set");
});
process.on("disconnect", () => process.exit(0));
const ports: Record<string, number> = {};
for (const { name, listen, to } of orders) {
  const way = (client: string): Way => ways[name]?.[client] ?? ways[name]?.["any"] ?? { ms: 0 };
  // The addresses of one origin listen on one port.
  const port = Object.entries(ports).find(([other]) => other.split("@")[1] === name.split("@")[1])?.[1] ?? 0;
  ports[name] = (await startLink({ host: listen, port }, to, way)).port;
}
process.send?.(ports);
