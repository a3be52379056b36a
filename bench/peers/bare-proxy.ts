import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";
import { bareProxy } from "../lib/bare-proxy.ts";

/** A bare proxy before the origin at the given port. */
const server = createServer(bareProxy(new Pool(`http://127.0.0.1:${process.argv[2]}`, { connections: 128 })));
server.listen(0, "127.0.0.1", () => process.stdout.write(String((server.address() as AddressInfo).port)));
process.once("SIGTERM", () => process.exit(0));
