import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serveBareCell } from "../lib/bare-cell.ts";

/*
 * A minimal node:http proxy in front of workerd with a script and its class of Durable Objects in a static
 * configuration, and storage on disk. The argument is the script. Prints its port.
 */
const source = process.argv[2]!;
const folder = mkdtempSync(join(tmpdir(), "bare-objects-"));
mkdirSync(join(folder, "objects"));
writeFileSync(join(folder, "main.js"), source);
writeFileSync(
  join(folder, "config.capnp"),
  `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "main.js", esModule = embed "main.js")],
      compatibilityDate = "2026-11-01",
      durableObjectNamespaces = [(className = "Room", uniqueKey = "room", enableSql = true)],
      durableObjectStorage = (localDisk = "objects"),
      bindings = [(name = "ROOMS", durableObjectNamespace = "Room")])),
    (name = "objects", disk = (path = "objects", writable = true)),
  ],
  sockets = [(name = "main", address = "unix:cell.sock", service = "main", http = ())]);
`,
);
await serveBareCell(folder, "/fetch/first");
