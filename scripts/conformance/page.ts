import { absentProduct } from "../../src/control/api/server/absent-products.ts";
import type { Operation } from "../../src/control/api/operation.ts";
import { canonicalPath } from "../../src/control/api/server/paths.ts";
import type { RecordedAnswer } from "../../test/helpers/record-answers.ts";
import { exceptions } from "./exceptions.ts";
import { pathsOf, type SdkCall } from "./sdk-calls.ts";

export interface Conformance {
  operations: readonly Operation[];
  answers: readonly RecordedAnswer[];
  /** The methods of each release of the client, newest first. Answers are compiled against the first release. */
  releases: readonly { version: string; calls: readonly SdkCall[] }[];
  /** Operations with an answer that does not fit the client's types. */
  mismatches: ReadonlySet<string>;
}

const normalized = (method: string, path: string): string => `${method} ${path.replace(/\{\w*\}/g, "{}")}`;
const keysOf = (call: SdkCall): string[] =>
  pathsOf(call).map((path) => normalized(call.httpMethod, canonicalPath(path)));

/** The methods of the client for each operation, by the operation's id. */
export function callsByOperation(
  operations: readonly Operation[],
  calls: readonly SdkCall[],
): Map<string, SdkCall[]> {
  const keys = operations.map(({ id, method, path }) => ({ id, parts: normalized(method, path).split("/") }));
  const exact = new Map(keys.map(({ id, parts }) => [parts.join("/"), [id]]));
  /** A parameter in the client may be a fixed segment in our paths, for example the name of a setting. */
  const matching = (key: string): string[] => {
    const own = key.split("/");
    const alike = keys.filter(
      ({ parts }) =>
        parts.length === own.length && own.every((part, i) => part === "{}" || part === parts[i]),
    );
    return exact.get(key) ?? alike.map(({ id }) => id);
  };
  const found = new Map<string, SdkCall[]>();
  for (const call of calls) {
    for (const id of new Set(keysOf(call).flatMap(matching))) {
      if (!found.has(id)) found.set(id, []);
      found.get(id)!.push(call);
    }
  }
  return found;
}

type Fate = "here" | "refused" | "absent";
function fatesOf(operations: readonly Operation[], calls: readonly SdkCall[]): (SdkCall & { fate: Fate })[] {
  const here = new Set([...callsByOperation(operations, calls).values()].flat());
  return calls.map((call) => {
    const isKnown = pathsOf(call).some((path) => absentProduct(canonicalPath(path)) !== undefined);
    return { ...call, fate: here.has(call) ? "here" : isKnown ? "refused" : "absent" };
  });
}

/** The text of docs/reference/conformance.md. */
export function conformancePage({ operations, answers, releases, mismatches }: Conformance): string {
  const [newest] = releases;
  const methods = callsByOperation(operations, newest!.calls);
  const clients = new Map<string, Set<string>>();
  for (const { operation, client } of answers) {
    if (!clients.has(operation)) clients.set(operation, new Set());
    clients.get(operation)!.add(client);
  }
  const refused = "refused by name";
  const sdkCell = ({ id, isRefusal }: Operation): string => {
    if (!methods.has(id)) return "no method";
    if (isRefusal === true) return refused;
    if (mismatches.has(id)) return "does not compile";
    if (exceptions[id] !== undefined) return `works; ${exceptions[id]}`;
    return clients.has(id) ? "compiles" : "not tried";
  };
  const rows = operations.map((operation) => {
    const { id, method, path, isRefusal } = operation;
    const by = clients.get(id);
    if (isRefusal === true && by !== undefined)
      throw new Error(`${id} is declared as a refusal and succeeded`);
    const http = isRefusal === true ? refused : by === undefined ? "not tried" : "works";
    return `| ${method} | \`${path}\` | ${http} | ${sdkCell(operation)} | ${by?.has("wrangler") === true ? "works" : ""} |`;
  });
  const fates = releases.map(({ version, calls }) => ({ version, calls: fatesOf(operations, calls) }));
  const releaseRows = fates.map(({ version, calls }) => {
    const count = (fate: Fate): number => calls.filter((call) => call.fate === fate).length;
    return `| ${version} | ${calls.length} | ${count("here")} | ${count("refused")} | ${count("absent")} |`;
  });
  const absent = fates[0]!.calls.filter(({ fate }) => fate === "absent");
  const absentRows = new Set(
    absent.map(({ httpMethod, path }) => `- \`${httpMethod} ${path.replaceAll("{}", "…")}\``),
  );
  return `# Conformance

The tests make this page: \`npm run conformance\` runs them and records every answer.

- **HTTP**: a test called the operation with success and checked the answer against
  [openapi.json](../../openapi.json). "Refused by name" marks an operation that clients call and that always
  answers with an error which names what this installation does not have.
- **SDK ${newest!.version}**: every distinct shape of answer was compiled against the types of the official client's
  method. Unknown properties are accepted. So is null where a property is optional, as in the public API.
- **wrangler**: wrangler called the operation with success in a test.

## Releases of the official client

The methods of each release, by the answer to a call. Calls of a product that Selvedge does not have are
refused by name (code 7010).

| Release | Methods | Here | Refused by name | Absent (7003) |
|---|---|---|---|---|
${releaseRows.join("\n")}

## Operations

| | Path | HTTP | SDK ${newest!.version} | wrangler |
|---|---|---|---|---|
${rows.join("\n")}

## Absent

Methods of the SDK ${newest!.version} that Selvedge lacks, although it serves other methods of the product:

${[...absentRows].toSorted().join("\n")}
`;
}
