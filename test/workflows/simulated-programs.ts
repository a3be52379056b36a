import type { Step } from "../../src/products/workflows/worker/step.ts";
import type { World } from "./simulated-world.ts";

/** A workflow's code, as data. */
export type Program =
  | { kind: "do"; name: string; takesMs: number; failures: number; isFatal: boolean; nested?: Program }
  | { kind: "sleep"; name: string; ms: number }
  | { kind: "wait"; name: string; type: string; timeoutMs: number }
  | { kind: "all" | "sequence"; of: Program[] }
  | { kind: "repeat"; times: number; of: Program };

/** Observes the run of a program. */
export interface Observer {
  begun(id: string, key: string): void;
  returned(id: string, key: string, value: string): void;
  received(id: string, key: string, event: string): void;
  token(): number;
  after(ms: number): Promise<void>;
}

export function randomProgram(world: World, depth = 0): Program {
  const { integer, chance } = world;
  const kind = integer(depth > 2 ? 6 : 10);
  const name = `n${integer(3)}`;
  if (kind < 3) {
    const nested = depth < 2 && chance(0.1) ? { nested: randomProgram(world, 2) } : {};
    return {
      kind: "do",
      name,
      takesMs: chance(0.2) ? integer(2000) : integer(20),
      failures: chance(0.2) ? integer(3) : 0,
      isFatal: chance(0.05),
      ...nested,
    };
  }
  if (kind < 5) return { kind: "sleep", name, ms: chance(0.5) ? integer(200) : integer(8000) };
  if (kind < 6) return { kind: "wait", name, type: `t${integer(2)}`, timeoutMs: integer(10_000) };
  if (kind < 7) return { kind: "repeat", times: 1 + integer(4), of: randomProgram(world, depth + 1) };
  const of = Array.from({ length: 1 + integer(4) }, () => randomProgram(world, depth + 1));
  return { kind: kind < 9 ? "sequence" : "all", of };
}

/** Runs a program; the result has the value of every step. */
export async function interpret(
  program: Program,
  step: Step,
  id: string,
  { observer, isCurrent }: { observer: Observer; isCurrent: () => boolean },
): Promise<Record<string, string>> {
  const output: Record<string, string> = {};
  const counts = new Map<string, number>();
  const keyOf = (kind: string, name: string): string => {
    const count = (counts.get(kind + name) ?? 0) + 1;
    counts.set(kind + name, count);
    return `${name}-${count}`;
  };
  const run = async (part: Program): Promise<void> => {
    switch (part.kind) {
      case "sequence":
        for (const each of part.of) await run(each);
        return;
      case "all":
        await Promise.all(part.of.map(run));
        return;
      case "repeat":
        for (let i = 0; i < part.times; i++) await run(part.of);
        return;
      case "sleep":
        await step.sleep(part.name, part.ms);
        return;
      case "wait": {
        const key = keyOf("wait", part.name);
        try {
          const event = await step.waitForEvent(part.name, { type: part.type, timeout: part.timeoutMs });
          if (isCurrent()) observer.received(id, key, event.payload as string);
        } catch (error) {
          if ((error as Error).name !== "WorkflowTimeoutError") throw error;
        }
        return;
      }
      case "do": {
        const key = keyOf("do", part.name);
        try {
          const config = { retries: { limit: 5, delay: 100, backoff: "constant" }, timeout: "1 hour" };
          const value = (await step.do(part.name, config, async ({ attempt }: { attempt: number }) => {
            if (isCurrent()) observer.begun(id, key);
            await observer.after(part.takesMs);
            if (part.nested !== undefined) await step.do(`${key}.inner`, config, async () => "inner");
            if (attempt <= part.failures) throw new Error(`failure ${attempt}`);
            if (part.isFatal) throw Object.assign(new Error("fatal"), { name: "NonRetryableError" });
            return `${key}#${observer.token()}`;
          })) as string;
          output[key] = value;
          if (isCurrent()) observer.returned(id, key, value);
        } catch (error) {
          if (!(error instanceof Error) || !/^(fatal|failure)/.test(error.message)) throw error;
        }
      }
    }
  };
  await run(program);
  return output;
}
