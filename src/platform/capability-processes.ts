import { capability } from "../capability.ts";
import { ProcessCalls } from "./process-calls/calls.ts";
import { MessageBus } from "./processes/message-bus.ts";
import { callsPath } from "./processes/protocol.ts";

/** Calls and messages between the main process and edge processes. Unused without edge processes. */
export const processes = capability({
  name: "processes",
  processes: "all",
  needs: [],
  create({ own }) {
    const bus = new MessageBus();
    if (own.role === "edge") own.channel.connect(bus);
    if (own.role === "single") return { messageBus: bus, calls: undefined };
    const { folder, id } = own.supervised;
    const mainPath = callsPath(folder, "main");
    const path = own.role === "main" ? mainPath : callsPath(folder, id);
    return { messageBus: bus, calls: new ProcessCalls(path, mainPath) };
  },
  async listen({ calls, logger }) {
    await calls?.listen((error, name) =>
      logger.error({ err: error, call: name }, "a call of another process could not be answered"),
    );
  },
  // After the listeners of visitors, because their requests make calls until they end.
  close: ({ calls }) => calls?.close(),
});
