import { afterAll, beforeAll, expect, it } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { uploadForm } from "../runtime/platform.ts";
import { spy } from "../runtime/spy.ts";
import { startWorkflowHosting, type WorkflowHosting } from "./hosting.ts";

let hosting: WorkflowHosting;
let neighbour: string;
/** When the engine was created: its invocations are numbered from this time. */
const started = { from: 0, to: 0 };
beforeAll(async () => {
  started.from = Date.now();
  // One cell for all, where a script could harm others most easily.
  hosting = await startWorkflowHosting({ workflowCells: 1 });
  started.to = Date.now();
  const made = await hosting.call("POST", "/accounts", { name: "neighbour" });
  neighbour = `/accounts/${(made.body.result as { id: string }).id}`;
  const form = uploadForm(`import { WorkflowEntrypoint } from "cloudflare:workers";
export class Main extends WorkflowEntrypoint {
  async run({ payload }, step) {
    const results = [];
    for (let i = 0; i < 5; i++) results.push(await step.do("step", async () => payload.n * 10 + i));
    await step.sleep("a while", 5);
    return results;
  }
}
export default {};`);
  const uploaded = await fetch(`${hosting.ready.api}${neighbour}/workers/scripts/innocent`, {
    method: "PUT",
    headers: { authorization: `Bearer ${ownerToken}` },
    body: form,
  });
  expect(uploaded.status).toBe(200);
  const script = { script_name: "innocent", class_name: "Main" };
  expect((await hosting.call("PUT", `${neighbour}/workflows/innocent`, script)).body.success).toBe(true);
});
afterAll(() => hosting.close(1000));

/**
 * Runs instances of a neighbour's account with a hostile workflow among them; resolves once all have ended.
 */
async function together(hostile: string, label: string): Promise<string[]> {
  const innocent = async (n: number): Promise<unknown> => {
    const path = `${neighbour}/workflows/innocent/instances`;
    expect((await hosting.call("POST", path, { id: `${label}-${n}`, params: { n } })).body.errors).toEqual(
      [],
    );
    for (;;) {
      const { status, output } = (await hosting.call("GET", `${path}/${label}-${n}/status`)).body.result as {
        status: string;
        output: unknown;
      };
      if (["complete", "errored", "terminated"].includes(status)) return [status, output];
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const count = 10;
  const ends = Array.from({ length: count }, async (_, n) => innocent(n));
  const own = Array.from({ length: count }, async (_, n) => {
    await hosting.create(hostile, `${label}-${n}`);
    return (await hosting.end(hostile, `${label}-${n}`)).status;
  });
  expect(await Promise.all(ends)).toEqual(
    Array.from({ length: count }, (_, n) => ["complete", Array.from({ length: 5 }, (__, i) => n * 10 + i)]),
  );
  return Promise.all(own);
}

async function deploy(name: string, code: string): Promise<void> {
  await hosting.deploy(name, code);
  const workflow = { script_name: name, class_name: "Main" };
  const { body } = await hosting.call("PUT", `/accounts/${hosting.account}/workflows/${name}`, workflow);
  expect(body.errors).toEqual([]);
}

/** Frames that a script sends for its own and for guessed invocations. */
const lines = (): string => `
const ending = JSON.stringify({ end: "throw", error: { name: "Error", message: "not mine" }, unasked: [] });
const frames = ["{}"];
for (let ms = ${started.from}; ms <= ${started.to}; ms++)
  for (let n = 1; n <= 40; n++) {
    const invocation = ms * 1024 + n;
    frames.push("E\\t" + invocation + "\\t" + ending, "E " + invocation + " 0 " + ending.length + "\\n" + ending);
  }
const evil = frames.join("\\n");`;

const names = [
  "products/workflows/worker/entry.js",
  "sandbox/worker/workflow-stream.js",
  "sandbox/worker/run.js",
  "entry.js",
  "user.js",
];
const attacks: Record<string, string> = {
  "patches the modules around it": `async function attack() {
  for (const name of ${JSON.stringify(names)}) {
    const module = await import("./__selvedge/" + name).catch(() => ({}));
    for (const value of Object.values(module)) {
      for (const target of [value, value?.prototype])
        for (const method of ["run", "fetch", "call"]) try { target[method] = async () => evil; } catch {}
      try { Object.setPrototypeOf(value.prototype, { run: async () => evil }); } catch {}
    }
  }
}`,
  "replaces what messages are made with": `JSON.stringify = () => evil;
async function attack() {}`,
  "intercepts through prototypes": `async function attack() {}
for (const name of ["call", "note", "begun", "listen", "end", "toJSON"])
  Object.defineProperty(Object.prototype, name, { value: () => evil, configurable: true, writable: true });`,
  "replaces what promises give": `async function attack() {}
Promise.prototype.then = new Proxy(Promise.prototype.then, {
  apply: (then, self, [done, failed]) => Reflect.apply(then, self, [() => done?.(evil), failed]),
});`,
};

it.each(Object.entries(attacks))(
  "a script that %s ends no instance of another account",
  async (what, attack) => {
    const name = `attack-${Object.keys(attacks).indexOf(what)}`;
    await deploy(
      name,
      `import { WorkflowEntrypoint } from "cloudflare:workers";
${lines()}
${attack}
export class Main extends WorkflowEntrypoint {
  async run(event, step) {
    await attack();
    return evil;
  }
}
export default {};`,
    );
    await together(name, name);
  },
);

it("results with line breaks return unchanged, to their own instance", async () => {
  // The second is too long for the start message, so the invocation requests it.
  await deploy(
    "breaking",
    `import { WorkflowEntrypoint } from "cloudflare:workers";
${lines()}
export class Main extends WorkflowEntrypoint {
  async run(event, step) {
    const short = await step.do("short", async () => evil.slice(0, 1000));
    const long = await step.do("long", async () => evil.slice(0, 500_000));
    await step.sleep("a while", 200);
    return [short === evil.slice(0, 1000), long === evil.slice(0, 500_000)];
  }
}
export default {};`,
  );
  expect(await together("breaking", "breaking")).toEqual(Array(10).fill("complete"));
  expect((await hosting.status("breaking", "breaking-0")).output).toEqual([true, true]);
});

it.each([1, 2, 3, 4])(
  "a script that breaks all it can reach ends its own instances only: %i",
  async (seed) => {
    await deploy(
      `broken-${seed}`,
      `${spy}
export class Main extends workers.WorkflowEntrypoint {
  async run(event, step) {
    sabotage(${seed}, ${[2, 5, 20, 100][seed % 4]});
    await step.do("a", async () => 1);
    return 1;
  }
}
export default {};`,
    );
    await together(`broken-${seed}`, `broken-${seed}`);
  },
);

it("replaced natives of a script see no token while its invocations run", async () => {
  await deploy(
    "spying",
    `${spy}
install();
export class Main extends workers.WorkflowEntrypoint {
  async run(event, step) {
    await step.do("a", async () => 1);
    await step.sleep("a while", 200);
    await step.do("b", async () => fetch("http://nowhere.invalid/").catch(() => {}));
    return [...seen];
  }
}
export default {};`,
  );
  await hosting.create("spying", "one");
  const { status, output } = await hosting.end("spying", "one");
  expect([status, output]).toEqual(["complete", []]);
});
