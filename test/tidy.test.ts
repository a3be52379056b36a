import { stripTypeScriptTypes } from "node:module";
import { parse, type Expression, type ExpressionStatement, type Program } from "acorn";
import { describe, expect, it } from "vitest";
import { files, imports, once, product, sources, text } from "./helpers/sources.ts";
import { testMsMax, waitMsMax } from "./helpers/waits.ts";

/** House rules that a machine can check. */
const code = once((file) => stripTypeScriptTypes(text(file)));
const parsed = once((file): Program =>
  parse(code(file), { ecmaVersion: "latest", sourceType: "module", allowHashBang: true }),
);

/** All expression statements. */
function statementsOf(file: string): ExpressionStatement[] {
  const found: ExpressionStatement[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    if ("type" in node && node.type === "ExpressionStatement") found.push(node as ExpressionStatement);
    for (const part of Object.values(node)) visit(part);
  };
  visit(parsed(file).body);
  return found;
}

/** The names of a file's functions that have more than a number of lines. */
function longFunctions(file: string, linesMax: number): string[] {
  const found = new Set<string>();
  const visit = (node: unknown, outer: string): void => {
    if (typeof node !== "object" || node === null) return;
    const { type, start, end, id, key } = node as Partial<Record<"id" | "key", { name?: string } | null>> & {
      type?: string;
      start: number;
      end: number;
    };
    const name = id?.name ?? key?.name ?? outer;
    const isFunction = /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(type ?? "");
    if (isFunction && code(file).slice(start, end).split("\n").length > linesMax) found.add(name);
    for (const part of Object.values(node)) visit(part, name);
  };
  visit(parsed(file).body, "");
  return [...found];
}

/**
 * `promise.then(…)` and similar calls whose last handler may itself throw. The linter assumes that handlers
 * never throw.
 */
function isUnguardedChain(expression: Expression): boolean {
  if (expression.type !== "CallExpression" || expression.callee.type !== "MemberExpression") return false;
  const { property } = expression.callee;
  const method = property.type === "Identifier" ? property.name : "";
  if (!["then", "catch", "finally"].includes(method)) return false;
  const handler = expression.arguments.at(-1);
  const isEmpty =
    handler?.type === "ArrowFunctionExpression" &&
    handler.body.type === "BlockStatement" &&
    handler.body.body.length === 0;
  return method !== "catch" || !isEmpty;
}

/**
 * The packages that a file imports. Unlike a text search, this ignores the code of scripts in string literals
 * of tests.
 */
function packagesOf(file: string): string[] {
  return parsed(file).body.flatMap((node) => {
    const specifier = "source" in node ? String(node.source?.value ?? ".") : ".";
    return specifier.startsWith(".") ? [] : [specifier];
  });
}
const offenders = (
  where: (file: string) => boolean,
  bad: (imported: string, file: string) => boolean,
): string[] =>
  product.filter(where).flatMap((file) =>
    imports(file)
      .filter((each) => bad(each, file))
      .map((each) => `${file} imports ${each}`),
  );

/** Files beside the APIs that write HTTP answers with the API's errors. */
const answering = [
  "src/products/images/delivery/respond.ts", // of the delivery of pictures at the edge
];

/** Functions with more than sixty lines, and why each is one. The list only becomes shorter. */
const stillLong = new Set<string>([
  // Lists of operations, which differ in the services or the texts that the function receives.
  "src/control/tokens/api.ts tokenOperations",
  "src/dns/transfers/api-transfer-parties.ts operationsOf",
  "src/workers/scripts/api-secrets.ts secretOperations",
  "src/workers/scripts/api-settings.ts settingsOperations",
  "src/workers/scripts/api-settings.ts accountSettingsOperations",
  "src/workers/scripts/versions/api-code.ts codeOperations",
  // One value for each metric.
  "src/edge/smart-routing/metrics.ts smartRoutingMetrics",
  // The methods of one object.
  "src/products/workflows/store/store.ts instanceStore",
  // The callbacks of one exchange share its state; on the path of every request.
  "src/sandbox/gateway/exchange.ts exchange",
  // The rules of one grammar refer to each other. Tests only.
  "src/rules/arbitraries.ts anyExpression",
]);

describe("imports point one way: api → domain → store → storage", () => {
  it("SQL is built in stores and storage only", () => {
    const builds = product.filter((file) =>
      /\.(selectFrom|insertInto|updateTable|deleteFrom)\(/.test(text(file)),
    );
    const allowed = (file: string): boolean =>
      /(^|\/)(\w+-)?store(-\w+)?\.ts$|^src\/platform\/storage\//.test(file);
    // The first start creates the installation's secret.
    expect(builds.filter((file) => !allowed(file))).toEqual(["src/control/accounts/pepper.ts"]);
  });

  it("storage imports nothing from its users", () => {
    expect(
      offenders(
        (file) => file.startsWith("src/platform/storage/"),
        // Their declarations are data.
        (each) => /^src\/(?!platform\/(storage|timers|tracing|util)\/|declarations?\.ts)/.test(each),
      ),
    ).toEqual([]);
  });

  it("stores know no operations and no HTTP", () => {
    expect(
      offenders(
        (file) => /\bstore\.ts$/.test(file),
        (each) => /\/api(-\w+)?\.ts$|^node:http$|^hono/.test(each),
      ),
    ).toEqual([]);
  });

  it("domains know no HTTP status: they throw a DomainError, for which api-errors.ts has the codes", () => {
    // Bindings are APIs too: they answer the calls of scripts.
    const isApi = (file: string): boolean =>
      /^src\/(control\/api\/|test-api\/|capability\.ts$)|\/([\w-]+-)?api(-[\w-]+)?\.ts$|\/api\/|\/binding\.ts$/.test(
        file,
      );
    const found = product.filter(
      (file) => !isApi(file) && imports(file).includes("src/control/api/errors.ts"),
    );
    expect(found).toEqual(answering);
  });

  it("the rules language stands alone", () => {
    expect(
      offenders(
        (file) => file.startsWith("src/rules/"),
        (each) =>
          each.startsWith("src/") &&
          !each.startsWith("src/rules/") &&
          each !== "src/platform/util/suggest.ts",
      ),
    ).toEqual([]);
  });

  it("the regular expressions could be a package of their own", () => {
    expect(
      offenders(
        (file) => file.startsWith("src/rules/regex/"),
        (each) => each.startsWith("src/") && !each.startsWith("src/rules/regex/"),
      ),
    ).toEqual([]);
  });

  it("helpers import nothing of the product", () => {
    expect(
      offenders(
        (file) => file.startsWith("src/platform/util/"),
        (each) => /^src\/(?!platform\/util\/)/.test(each),
      ),
    ).toEqual([]);
  });
});

it("packages that are imported are declared, and those that are declared are imported", () => {
  const { dependencies, devDependencies } = JSON.parse(text("package.json")) as Record<
    string,
    Record<string, string>
  >;
  const packageOf = (specifier: string): string =>
    specifier
      .split("/")
      .slice(0, specifier.startsWith("@") ? 2 : 1)
      .join("/");
  const used = (where: readonly string[], of: (file: string) => string[]): string[] => [
    ...new Set(
      where
        .flatMap(of)
        .filter((each) => !/^(src|test|bench|scripts)\/|^node:|^cloudflare:/.test(each))
        .map(packageOf),
    ),
  ];
  // The console imports the first of the last three; the others are programs, not modules.
  expect([...used(product, imports), "preact", "node", "workerd"].toSorted()).toEqual(
    Object.keys(dependencies!).toSorted(),
  );
  const known = new Set([...Object.keys(dependencies!), ...Object.keys(devDependencies!)]);
  expect(used(sources, packagesOf).filter((each) => !known.has(each))).toEqual([]);
  expect(
    Object.values({ ...dependencies, ...devDependencies }).filter(
      (version) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version),
    ),
  ).toEqual([]);
});

it("no file names a registry's host, a personal machine or unfinished work", () => {
  // The brackets prevent matches in this file.
  const words = [/[T]ODO/, /[F]IXME/, /registry\.npmj[s]/, /"resolved": "[h]ttp/, /\/roo[t]\//, /\/hom[e]\//];
  const found = files
    .filter((file) => !/\.(png|jpg|mmdb)$/.test(file) && file !== "LICENSE")
    .flatMap((file) =>
      words.filter((word) => word.test(text(file))).map((word) => `${file}: ${word.source}`),
    );
  expect(found).toEqual([]);
});

/** Files that read the system's own time, and why. Everything that is stored or due follows the platform's clock. */
const realTime: readonly [RegExp, string][] = [
  [/^src\/platform\/timers\/clock\.ts$/, "is the clock"],
  [/^src\/test-api\/test-clock\.ts$/, "sets that clock"],
  [/^src\/(cli|testkit)\//, "commands and tests run beside a platform, in processes of their own"],
  [
    /^src\/platform\/(log-shipping|object-log|periodic-backups)/,
    "backups are restored to the operator's time",
  ],
  [/^src\/platform\/storage\/(archive|backup|commit-times)/, "backups, as above"],
  [/^src\/platform\/storage\/blobs\//, "signatures for other stores, and ages of files"],
  [
    /^src\/platform\/storage\/nodes\/|^src\/workers\/tail\/relay\.ts$/,
    "other nodes have clocks of their own",
  ],
  [/^src\/platform\/(observability|access-log|tracing)\//, "logs and traces"],
  [/^src\/edge\/http-server\/response-head\.ts$/, "the Date field, for visitors with clocks of their own"],
  [/^src\/platform\/util\/token-buckets\.ts$/, "a default; callers pass the clock"],
  [/^src\/rules\/request\/request-fields\.ts$/, "a default; the edge passes the time of the request"],
  [/^src\/edge\/(smart-routing\/|origin\/origins\.ts$)/, "connections"],
  [/^src\/edge\/tls\/certificates\/x509\.ts$/, "clients check certificates with the system's time"],
  [/^src\/products\/images\/results\//, "ages of files"],
  [/^src\/products\/logpush\/(spool|destination)\//, "ages of files, and signatures for other stores"],
  [/\/worker\//, "isolates have a Date of their own"],
  [/\/testing\.ts$/, "harnesses of tests"],
];

it("everything that is stored or due asks the clock of the platform for the time", () => {
  const bare = product.filter(
    (file) =>
      /\bDate\.now\b|new Date\(\)/.test(text(file)) && !realTime.some(([allowed]) => allowed.test(file)),
  );
  expect(bare).toEqual([]);
  const stale = realTime.filter(([allowed]) => !product.some((file) => allowed.test(file)));
  expect(stale).toEqual([]);
});

it("every promise that is not awaited goes through unawaited() or ends in an empty catch", () => {
  const others = product.filter((file) => file !== "src/platform/util/uncaught.ts");
  const left = others.flatMap((file) =>
    statementsOf(file).flatMap(({ expression }) =>
      isUnguardedChain(expression) ? [`${file}: ${text(file).slice(expression.start, expression.end)}`] : [],
    ),
  );
  expect(left).toEqual([]);
});

it("no wait with a limit leaves its timer, which would keep the process alive: endsWithin() ends it", () => {
  const race = /Promise\.race\(\[[^\]]*?\b(?:delay|setTimeout)\([^)]*\)/g;
  const left = product
    .filter((file) => !/\/(testkit|worker)\//.test(file)) // on another Node, and in isolates
    .flatMap((file) =>
      (text(file).match(race) ?? [])
        .filter((found) => !/ref: false|signal/.test(found))
        .map((found) => `${file}: ${found}`),
    );
  expect(left).toEqual([]);
});

it("connections over TLS to servers that customers choose have the options of peerTls", () => {
  const opens =
    /import \{[^}]*\b(?:connect|request|createSecureContext|Agent)\b[^}]*\} from "node:(?:tls|https)"/;
  const others = [
    /^src\/edge\/tls\/secure-contexts\.ts$/, // for visitors
    /^src\/edge\/tls\/acme\/|^src\/platform\//, // to servers that the operator names
    /^src\/products\/request-tracer\/|^src\/testkit\//, // to the platform itself
  ];
  const open = product.filter((file) => opens.test(text(file)) && !others.some((each) => each.test(file)));
  expect(open.length).toBeGreaterThan(3);
  expect(open.filter((file) => !text(file).includes("...peerTls"))).toEqual([]);
});

it("commands print through output.ts, which escapes control characters of customers' names", () => {
  const direct = /process\.std(?:out|err)\.write|\bconsole\.\w+\(/;
  const found = product.filter((file) => /^src\/(?:cli\/|main\.ts)/.test(file) && direct.test(text(file)));
  expect(found).toEqual(["src/cli/output.ts"]);
});

it("no test has less time than the configuration gives to all, and no wait less than waitMsMax", () => {
  const waits = /\b(?:waitFor|waitUntil|poll)\((?:(?!;\n)[^])*?\btimeout: ([\d_]+)/g;
  const tests = /\b(?:it|test|describe)\b[^;{]*\{ timeout: ([\d_]+) \}|^\}, ([\d_]+)\);/gm;
  const short = sources
    .filter((file) => file.endsWith(".test.ts"))
    .flatMap((file) =>
      [...text(file).matchAll(waits), ...text(file).matchAll(tests)]
        .filter(([found, first, second]) => {
          const isWait = /^(?:wait|poll)/.test(found);
          return Number((first ?? second)!.replaceAll("_", "")) < (isWait ? waitMsMax : testMsMax);
        })
        .map(([found]) => `${file}: ${found.slice(0, 80)}`),
    );
  expect(short).toEqual([]);
});

it("files stay small enough to be read at once", () => {
  const linesMax = 420;
  expect(product.filter((file) => text(file).split("\n").length > linesMax)).toEqual([]);
});

it("functions stay short enough to be read at once", () => {
  const linesMax = 60;
  // Migrations are tables.
  const isList = (file: string): boolean => /\/migrations\/\d{4}-/.test(file);
  const long = product
    .filter((file) => file.endsWith(".ts") && !isList(file))
    .flatMap((file) => longFunctions(file, linesMax).map((name) => `${file} ${name}`));
  expect(long.toSorted()).toEqual([...stillLong].toSorted());
});

it("caches allocate as they grow, and not for all entries at once", () => {
  const options = /new LRUCache(?:<[^;]*?>)?\(\s*(\{[^;]*?\})\s*\)/g;
  const allocating = product.filter((file) =>
    [...text(file).matchAll(options)].some(([, each]) => /\bmax:/.test(each!) && !/maxSize:/.test(each!)),
  );
  expect(allocating).toEqual([]); // use entriesMax of platform/util/loading-cache.ts
});

it("no search for blanks before something else takes quadratic time in a run of blanks", () => {
  // The search begins again at each blank of the run. A sticky or anchored pattern begins once.
  const literal = /(?<![\w*/])\/(\^?)\\s[*+](?!\/)(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\n\\[])+\/([a-z]*)/g;
  const searching = product.flatMap((file) =>
    [...text(file).matchAll(literal)]
      .filter(([, anchor, flags]) => !flags!.includes("y") && (anchor === "" || flags!.includes("m")))
      .map(([pattern]) => `${file}: ${pattern}`),
  );
  expect(searching).toEqual([]);
});

it("messages of unknown errors are never sent to callers", () => {
  // Code in isolates reports scripts' own errors to them. Commands and configuration report to the operator.
  const isInside = (file: string): boolean => !/^src\/(cli|platform\/config)\/|\/worker\//.test(file);
  const unknownWords =
    /\b(error|cause) as \w*Error\w*\)\.message|String\((error|cause)\)|\bmessage\b[^=]*\} = (error|cause) as|\$\{(error|cause)\}/;
  const taking = product.filter((file) => isInside(file) && unknownWords.test(text(file)));
  expect(taking).toEqual([
    "src/edge/client-info/geo.ts", // about a file that the operator names
    "src/edge/tls/certificates/certificate.ts", // about the caller's own certificate
    "src/platform/object-log/integrity/check-process.ts", // to the parent process
    "src/platform/util/json.ts", // about the caller's own text
    "src/products/images/engine/focus.ts", // to the parent process, which logs it
    "src/products/images/engine/process.ts", // to the parent process, which logs it
    "src/products/images/engine/trim.ts", // looked at, not passed on
    "src/products/snippets/check-module.ts", // about the caller's own code
    "src/products/workflows/api/resource.ts", // about durations, from our own parser
    "src/workers/objects/query/process.ts", // about the caller's own statement
    "src/workers/scripts/versions/inspect.ts", // about the caller's own code
    "src/workers/scripts/versions/modules.ts", // about the caller's own code
  ]);
});

it("no sentence has a pronoun for an unnamed person or thing where a noun belongs", () => {
  const written = files.filter((file) =>
    /^(src|test|bench|scripts|docs|examples|dashboard|bin)\/.*\.(tsx?|js|md)$|^\w+\.md$/.test(file),
  );
  // The brackets keep this file from finding itself. Names and addresses of invented people begin with a capital letter.
  const headless =
    /\b(?:[Ww]hateve[r]|[Ww]hoeve[r]|somebod[y])\b(?!@)|(?<!["'`])\b(?:[Nn]obod[y]|[Ss]omeon[e]|[Ee]veryon[e]) [a-z]/;
  expect(written.filter((file) => headless.test(text(file)))).toEqual([]);
});

it("a name of an exported class or type has one meaning", () => {
  const declared = product
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) =>
      [...text(file).matchAll(/^export (?:abstract )?(?:class|interface|type) (\w+)/gm)].map((match) => ({
        name: match[1]!,
        file,
      })),
    );
  const double = [...Map.groupBy(declared, ({ name }) => name)]
    .filter(([, places]) => places.length > 1)
    .map(([name, places]) => `${name}: ${places.map(({ file }) => file).join(", ")}`);
  expect(double).toEqual([]);
});

it("a source file has a name of its own: none is called index.ts", () => {
  expect(sources.filter((file) => file.endsWith("/index.ts"))).toEqual([]);
});

/** Lines of prose: comments of code, and Markdown outside of blocks of code. */
function proseOf(file: string): string[] {
  const lines = text(file).split("\n");
  if (file.endsWith(".md")) {
    let isCode = false;
    return lines.filter((line) => {
      if (line.startsWith("```")) isCode = !isCode;
      return !isCode;
    });
  }
  return lines.flatMap((line) => /^\s*(?:\/\/|\/?\*).*|(?<=\s)\/\/ .*/.exec(line)?.[0] ?? []);
}

it("no sentence begins with a relative clause in place of a noun, or uses an archaic word", () => {
  const written = files.filter(
    (file) =>
      /^(src|test|bench|scripts|docs|examples|dashboard|bin|packaging)\/.*\.(tsx?|js|md)$|^\w+\.md$/.test(
        file,
      ) && !/conformance|^test\/tidy/.test(file),
  );
  // "What a run needs." has no noun: "The parameters of a run." has one. Questions are allowed.
  const clause =
    /(?:^\s*(?:\/\/|\/?\*+|-|\|)?\s*|(?<!\d)[.:;]\s+)(?:What|Whom?|How much|How many|Which)\s[^?]*$/;
  const archaic =
    /\b(?:lest|hence|thus|whence|lent|dear|anew|shortly|whilst|upon|tells? of|told of|(?:is|are|was|were) told)\b/;
  const found = written.flatMap((file) =>
    proseOf(file)
      .filter((line) => clause.test(line) || archaic.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );
  expect(found).toEqual([]);
});
