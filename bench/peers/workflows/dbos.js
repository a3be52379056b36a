// The workflows of the benchmark on DBOS: engine, API and steps in one process. Arguments: the database's URL.
import { createServer } from "node:http";
import { DBOS } from "@dbos-inc/dbos-sdk";

DBOS.setConfig({
  name: "bench",
  systemDatabaseUrl: process.argv[2],
  runAdminServer: false,
  logLevel: "error",
});
const steps = (count) => async () => {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += await DBOS.runStep(async () => i, { name: `s${i}` });
  return sum;
};
const hourMs = 3_600_000;
const workflows = {
  "/sleep": DBOS.registerWorkflow(() => DBOS.sleep(hourMs), { name: "sleep" }),
  "/one": DBOS.registerWorkflow(steps(1), { name: "one" }),
  "/ten": DBOS.registerWorkflow(steps(10), { name: "ten" }),
};
await DBOS.launch();
async function answer(request, response) {
  request.resume();
  const handle = await DBOS.startWorkflow(workflows[request.url])();
  // Workflows that sleep for an hour are only started.
  response.end(request.url === "/sleep" ? "" : String(await handle.getResult()));
}
const server = createServer((request, response) => void answer(request, response));
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
