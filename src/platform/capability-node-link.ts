import { capability } from "../capability.ts";
import { reservation, storage } from "./capability.ts";
import { parseAddress } from "./config/config.ts";
import { ProcessCalls } from "./process-calls/calls.ts";
import { nodeTransport } from "./process-calls/node-transport.ts";
import { sharedValueOr } from "./storage/nodes/shared-values.ts";
import { randomText } from "./util/ids.ts";

const keyName = "node_link_key";
const keyBytes = 32;

/** The way between the nodes of an installation; undefined if this node has no address for them. */
export const nodeLink = capability({
  name: "node link",
  needs: [reservation, storage],
  async create({ config: { nodeListen }, sockets, storage: database }) {
    if (nodeListen === undefined) return { nodeCalls: undefined };
    const key = Buffer.from(await sharedValueOr(database, keyName, () => randomText(keyBytes, "hex")), "hex");
    const { host, port } = parseAddress(nodeListen)!;
    const at = sockets.take("nodeListen");
    const bound = port === 0 && "address" in at ? at.address().port : port;
    const address = `${host.includes(":") ? `[${host}]` : host}:${bound}`;
    return {
      nodeCalls: new ProcessCalls(
        address,
        address,
        nodeTransport(key, () => at),
      ),
    };
  },
  async listen({ nodeCalls, logger }) {
    await nodeCalls?.listen((error, name) =>
      logger.error({ err: error, call: name }, "a call of another node could not be answered"),
    );
  },
  close: ({ nodeCalls }) => nodeCalls?.close(),
});
