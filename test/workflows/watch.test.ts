import { execFile } from "node:child_process";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { startWorkflowHosting, type WorkflowHosting } from "./hosting.ts";

let hosting: WorkflowHosting;
beforeAll(async () => {
  hosting = await startWorkflowHosting();
  await hosting.workflow(
    "watched",
    `await step.do("first", async () => 1);
     const { payload } = await step.waitForEvent("go", { type: "go" });
     await step.do("second", { retries: { limit: 1, delay: 1 } }, async () => { if (payload.fail) throw new Error("as asked"); return "<b>"; });
     return payload;`,
  );
});
afterAll(() => hosting.close(1000));

function watch(instance: string, workflow = "watched"): Promise<{ code: number; stdout: string }> {
  const args = ["bin/selvedge.js", "workflow", "watch", workflow, instance, "--api", hosting.ready.api];
  const env = { ...process.env, SELVEDGE_API_TOKEN: ownerToken };
  return new Promise((resolve) => {
    execFile(process.execPath, args, { env }, (error, stdout) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout });
    });
  });
}

it("prints the changes of an instance until it ends", async () => {
  await hosting.create("watched", "one");
  await hosting.until("watched", "one", ["waiting"]);
  const watching = watch("one");
  await hosting.call("POST", `${hosting.instances("watched", "one")}/events`, {
    type: "go",
    payload: { n: 1 },
  });
  const { code, stdout } = await watching;
  expect(code).toBe(0);
  expect(stdout).toMatch(/step first-1 complete in \d+ ms: 1\n/);
  expect(stdout).toContain('instance complete\noutput {"n":1}\n');
});

it("exits with 1 when the instance fails", async () => {
  await hosting.create("watched", "two");
  await hosting.call("POST", `${hosting.instances("watched", "two")}/events`, {
    type: "go",
    payload: { fail: 1 },
  });
  const { code, stdout } = await watch("two");
  expect(code).toBe(1);
  expect(stdout).toContain("step second-1 failed: Error: as asked");
  expect(stdout).toContain("instance errored");
});

it("shows names and messages of a script without the controls of a terminal in them", async () => {
  const controls = "\\u001b]0;owned\\u0007\\u009b2J\\u202e\\r\\ninstance complete";
  await hosting.workflow(
    "painted",
    `await step.do("a", async () => "b${controls}");
     throw new Error("c${controls}");`,
  );
  await hosting.create("painted", "four");
  const { code, stdout } = await watch("four", "painted");
  expect(code).toBe(1);
  expect(stdout).toContain("]0;owned");
  expect(stdout).not.toMatch(/[^\P{C}\n]/u);
  expect(stdout).not.toMatch(/^instance complete/m);
});

it("is an HTML page that escapes all values of an instance", async () => {
  await hosting.create("watched", "three");
  await hosting.call("POST", `${hosting.instances("watched", "three")}/events`, { type: "go", payload: {} });
  await hosting.end("watched", "three");
  const response = await fetch(`${hosting.ready.api}${hosting.instances("watched", "three")}/timeline`, {
    headers: { authorization: `Bearer ${ownerToken}` },
  });
  expect(response.headers.get("content-type")).toContain("text/html");
  const page = await response.text();
  expect(page).toContain("second-1");
  expect(page).not.toContain("<b>");
});
