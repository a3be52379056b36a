import type { ApiCall, CallFilter } from "../journal.ts";
import type { Selvedge } from "../selvedge.ts";

/** The answer of a matcher, as vitest and jest expect it. */
export interface MatcherOutcome {
  pass: boolean;
  message: () => string;
}

/** The matchers of the runners whose tests use `expect`. */
export interface SelvedgeMatchers {
  /** The operation was called in a way that meets the other conditions. */
  toHaveCalled(operation: string, filter?: Omit<CallFilter, "operation">): Promise<void>;
  /** Each of these operations was called, and no other operation. */
  toHaveCalledOnly(...operations: string[]): Promise<void>;
  /** The name server answers with these records, in any order. */
  toAnswer(name: string, type: string, records: readonly unknown[]): Promise<void>;
}

const shownMax = 20;

/** Whether the operation was called at least once in a way that meets the other conditions. */
async function toHaveCalled(
  edge: Selvedge,
  operation: string,
  filter: Omit<CallFilter, "operation"> = {},
): Promise<MatcherOutcome> {
  const found = await edge.calls.all({ ...filter, operation });
  const made = await story(edge);
  return {
    pass: found.length > 0,
    message: () =>
      found.length > 0
        ? `Expected no such call of ${operation}, but there were ${found.length}.\n${made}`
        : `Expected a call of ${operation} with ${JSON.stringify(filter)}.\n${made}`,
  };
}

/** Whether each of these operations was called, and no other operation. */
async function toHaveCalledOnly(edge: Selvedge, ...operations: readonly string[]): Promise<MatcherOutcome> {
  const called = (await edge.calls.all()).map(
    ({ operation, method, path }) => operation ?? `${method} ${path}`,
  );
  const others = [...new Set(called)].filter((each) => !operations.includes(each));
  const missing = operations.filter((each) => !called.includes(each));
  const made = await story(edge);
  return {
    pass: others.length === 0 && missing.length === 0,
    message: () =>
      `Expected calls of these operations only: ${operations.join(", ")}.\n` +
      `Not expected: ${others.join(", ") || "none"}. Missing: ${missing.join(", ") || "none"}.\n${made}`,
  };
}

/** Whether the name server answers with these records, in any order. */
async function toAnswer(
  edge: Selvedge,
  name: string,
  type: string,
  records: readonly unknown[],
): Promise<MatcherOutcome> {
  const sorted = (some: readonly unknown[]): string[] => some.map((each) => JSON.stringify(each)).toSorted();
  let answer: string;
  try {
    answer = sorted(await edge.dig(name, type)).join(", ");
  } catch (error) {
    answer = records.length === 0 ? "" : ((error as { code?: string }).code ?? "a failure");
  }
  const wanted = sorted(records).join(", ");
  return {
    pass: answer === wanted,
    message: () =>
      `Expected the answer ${wanted || "nothing"} for ${name} ${type} but received ${answer || "nothing"}`,
  };
}

/** The matchers of all runners. */
export const matchers = { toHaveCalled, toHaveCalledOnly, toAnswer };

/** The properties of a platform that help to repeat a test: its seed, its time, its latest calls, and all of no operation. */
export async function story(edge: Selvedge): Promise<string> {
  const calls = await edge.calls.all();
  const isShown = (call: ApiCall, index: number): boolean =>
    index >= calls.length - shownMax || call.operation === null;
  const latest = calls.filter(isShown).map(({ n, method, path, status, operation, fault }) => {
    const named = operation ?? "no operation";
    return `  ${n} ${method} ${path} → ${status} (${named}${fault === undefined ? "" : `, ${fault}`})`;
  });
  const refused = (await edge.outbound.requests())
    .filter(({ answeredBy }) => answeredBy === "refused")
    .slice(-shownMax)
    .map(({ from, method, url }) => `  not answered: ${method} ${url} (${from})`);
  const time = (await edge.clock.now()).toISOString();
  return [`seed ${edge.seed}, clock ${time}, ${calls.length} calls:`, ...latest, ...refused].join("\n");
}
