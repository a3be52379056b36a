import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { createServer } from "node:tls";

/**
 * Runs a program next to a TLS listener on port 443, which forwards connections to a socket. See
 * public-api.ts.
 */
const [socketPath, certificate, key, command, ...args] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
];
const proxy = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (client) => {
  const upstream = connect(socketPath);
  client.pipe(upstream).pipe(client);
  client.on("error", () => upstream.destroy());
  upstream.on("error", () => client.destroy());
});
proxy.listen(443, "127.0.0.1", () => {
  const child = spawn(command, args, { stdio: "inherit" });
  child.on("error", (error) => {
    console.error(error.message);
    process.exit(127);
  });
  child.on("exit", (code, signal) => process.exit(code ?? (signal === null ? 0 : 1)));
});
