import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { SdkCall } from "./sdk-calls.ts";

/** An answer, with the client's method whose types it must fit. */
export interface Answered {
  operation: string;
  call: SdkCall;
  result: unknown;
}

const heading = (root: string): string => `
import type { PagePromise } from "${root}/core/pagination.js";
/** Some lists are fields of one result. The client's page then has this result as its only item. */
type Listed<Item> = Item[] | Item | { items: Item[] };
type Given<P> = P extends PagePromise<infer _, infer Item> ? Listed<Item> : Awaited<P>;
/** The type of a literal: arrays are readonly. Optional properties may be null, as in the public API. */
type Read<T> = T extends (infer E)[] ? readonly Read<E>[]
  : T extends object ? { [K in keyof T]: Read<T[K]> | (undefined extends T[K] ? null : never) } : T;
/** Accepts properties that the client's types lack. */
declare function accepts<T>(): <const V extends Read<T>>(value: V) => void;
`;

/**
 * Compiles answers against the types of the client. Returns the compiler's first message for each answer that does not
 * fit.
 */
export function compileAnswers(
  folder: string,
  packageFolder: string,
  answers: readonly Answered[],
): Map<Answered, string> {
  mkdirSync(folder, { recursive: true });
  const root = relative(folder, packageFolder);
  const files = [...new Set(answers.map(({ call }) => call.file))];
  const imports = files.map((file, i) => `import type * as m${i} from "${root}/${file}.js";`);
  const lines = [...heading(root).split("\n"), ...imports];
  const byLine = new Map<number, Answered>();
  for (const answer of answers) {
    const { file, className, method, gives } = answer.call;
    const returned = `ReturnType<m${files.indexOf(file)}.${className}["${method}"]>`;
    const value =
      gives === "answer" ? { success: true, errors: [], messages: [], result: answer.result } : answer.result;
    lines.push(`accepts<Given<${returned}>>()(${JSON.stringify(value)});`);
    byLine.set(lines.length, answer);
  }
  writeFileSync(join(folder, "answers.ts"), lines.join("\n"));
  const compilerOptions = {
    ...{ target: "es2024", module: "nodenext", moduleResolution: "nodenext", lib: ["es2024", "dom"] },
    ...{ strict: true, noEmit: true, skipLibCheck: true, types: ["node"] },
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["answers.ts"] }));
  writeFileSync(join(folder, "package.json"), '{"type":"commonjs"}');
  const failures = new Map<Answered, string>();
  const output = compile(folder);
  for (const [, line, words] of output.matchAll(
    /^.*answers\.ts\((\d+),\d+\): error TS\d+: (.*(?:\n .*)*)/gm,
  )) {
    const answer = byLine.get(Number(line));
    if (answer === undefined) throw new Error(`the answers cannot be compiled: ${words!}`);
    if (!failures.has(answer)) failures.set(answer, words!);
  }
  return failures;
}

function compile(folder: string): string {
  try {
    return execFileSync("tsc", ["-p", folder, "--pretty", "false"], { encoding: "utf8", maxBuffer: 2 ** 28 });
  } catch (error) {
    const { stdout } = error as { stdout: string };
    if (!stdout) throw error;
    return stdout;
  }
}
