import { connect } from "node:tls";
import { startPeer } from "./lib/child.ts";
import { atMost, cpuMicroseconds, median, pairedRatio, printGoals, printTable } from "./lib/measure.ts";

/** CPU time of a new TLS connection with one request: our listener, which looks at the first message, beside node:https. */
const rounds = 15;
const count = 400;
const atOnce = 8;
const sides = {
  listener: await startPeer("tls-server.ts", "listener"),
  https: await startPeer("tls-server.ts", "https"),
};

const visit = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const servername = "www.tls.example";
    const socket = connect({
      host: "127.0.0.1",
      port,
      servername,
      rejectUnauthorized: false,
      ALPNProtocols: ["http/1.1"],
    });
    socket.on("secureConnect", () =>
      socket.write(`GET / HTTP/1.1\r\nhost: ${servername}\r\nconnection: close\r\n\r\n`),
    );
    socket.resume().on("end", () => resolve());
    socket.on("error", reject);
  });

async function load(port: number): Promise<void> {
  let left = count;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left-- > 0) await visit(port);
    }),
  );
}

const cpu: Record<string, number[]> = { listener: [], https: [] };
for (let round = -2; round < rounds; round++) {
  const order = Object.entries(sides);
  for (const [name, { pid, port }] of round % 2 === 0 ? order : order.toReversed()) {
    const before = cpuMicroseconds(pid);
    await load(port);
    if (round >= 0) cpu[name]!.push((cpuMicroseconds(pid) - before) / count);
  }
}
printTable(
  ["", "CPU µs for each connection"],
  Object.entries(cpu).map(([name, values]) => [name, median(values)]),
);
printGoals([
  atMost("CPU of a new connection, listener / node:https", pairedRatio(cpu["listener"]!, cpu["https"]!), 1.1),
]);
for (const side of Object.values(sides)) await side.stop();
