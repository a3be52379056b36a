import { spawn } from "node:child_process";
import { expect, it } from "vitest";

/** A server in a separate process with the last net, whose handlers throw uncaught errors. */
const program = (isReady: boolean, body: string): string => `
import { createServer, request } from "node:http";
import { castLastNet, whileAnswering } from "${new URL("../../src/platform/observability/last-net.ts", import.meta.url).href}";
import { uncaughtCounts, unawaited, vital } from "${new URL("../../src/platform/util/uncaught.ts", import.meta.url).href}";
const lines = [];
castLastNet({ error: ({ err, kind }, message) => lines.push([message, kind, err.message]) }, () => ${isReady});
const faults = {
  "/timer": () => setTimeout(() => { throw new Error("in a timer"); }),
  "/event": (incoming) => incoming.on("end", () => { throw new Error("in an event"); }).resume(),
  "/rejection": () => void Promise.reject(new Error("a rejection")),
  "/unawaited": () => unawaited(Promise.reject(new Error("left alone"))),
  "/vital": () => vital("The writer", Promise.reject(new Error("of the writer"))),
};
const server = createServer((incoming, response) => {
  const fail = () => (response.headersSent ? response.destroy() : response.writeHead(500).end());
  whileAnswering(response, fail, () => (faults[incoming.url] ?? (() => response.end("fine")))(incoming));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const ask = (path) => new Promise((resolve) => {
  request({ host: "127.0.0.1", port: server.address().port, path, agent: false }, (answer) => {
    answer.resume().on("end", () => resolve(answer.statusCode));
  }).on("error", (error) => resolve(error.code)).end();
});
${body}
`;

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}
function run(isReady: boolean, body: string): Promise<Ended> {
  const child = spawn(process.execPath, ["--input-type=module", "-e", program(isReady, body)]);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, stdout, stderr })));
}

it("answers 500 to the failed request, logs and counts the error, and continues to serve", async () => {
  const { code, stdout } = await run(
    true,
    `const statuses = [];
    for (const path of ["/timer", "/event", "/rejection", "/fine"]) statuses.push(await ask(path));
    ask("/unawaited"); // nothing responds, which is why it must not happen
    while (lines.length < 4) await new Promise(setImmediate);
    console.log(JSON.stringify({ statuses, lines, uncaughtCounts }));
    process.exit(0);`,
  );
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    statuses: [500, 500, 500, 200],
    lines: [
      ["an exception was not caught", "exception", "in a timer"],
      ["an exception was not caught", "exception", "in an event"],
      ["an exception was not caught", "rejection", "a rejection"],
      ["an exception was not caught", "rejection", "left alone"],
    ],
    uncaughtCounts: { exception: 2, rejection: 2 },
  });
});

it("ends the process with the cause if essential work fails", async () => {
  const { code, stderr } = await run(true, `await ask("/vital"); console.log("went on");`);
  expect(code).toBe(70);
  expect(stderr).toContain("The writer failed");
  expect(stderr).toContain("of the writer");
});

it("ends a process that fails before it is ready", async () => {
  const { code, stderr } = await run(false, `await ask("/timer");`);
  expect(code).toBe(70);
  expect(stderr).toContain("in a timer");
});
