import { createServer } from "node:http";
import { createIPX, createIPXNodeServer, ipxFSStorage } from "ipx";

/** IPX as its documentation starts it, over the folder that is given. Prints its port. */
const ipx = createIPX({ storage: ipxFSStorage({ dir: process.argv[2] }) });
const server = createServer(createIPXNodeServer(ipx));
server.listen(0, "127.0.0.1", () => process.stdout.write(String(server.address().port)));
process.once("SIGTERM", () => process.exit(0));
