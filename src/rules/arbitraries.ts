import { fc } from "../../test/helpers/properties.ts";
import type { RequestDescription } from "./language.ts";

/** Random requests and well-typed expressions over few words, so that comparisons are often true. */
const words = ["", "a", "b", "ab", "A", "aB", "/a", "a,b", "\u00e9", "\u00ff\u0000", "a b", "x=1", "%61+b"];
const word = fc.constantFrom(...words);
const headerNames = ["accept", "Accept", "x-a", "X-B", "cookie", "user-agent"];

export const anyRequest: fc.Arbitrary<RequestDescription> = fc.record({
  method: fc.constantFrom("GET", "POST", "a"),
  url: fc
    .tuple(
      fc.constantFrom("/", "/a", "/ab", "/a.b"),
      fc.constantFrom("", "?", "?q=a&q=ab", "?q=b&r", "?x=1&q=%61"),
    )
    .map(([path, query]) => path + query),
  headers: fc
    .array(fc.tuple(fc.constantFrom(...headerNames), word), { maxLength: 6 })
    .map((pairs) => ["Host", "ab", ...pairs.flat()]),
  tls: fc.boolean(),
  ip: fc.constantFrom("10.0.0.1", "10.0.1.0", "200.0.0.1", "2001:db8::1", "ff00::"),
  httpVersion: fc.constantFrom("HTTP/1.1", "HTTP/2"),
  timestampMs: fc.constant(1_700_000_000_000),
  botScore: fc.integer({ min: 1, max: 99 }),
  cf: fc.record({ country: fc.constantFrom("DE", "US", "a"), asn: fc.constantFrom(1, 2, 13_335) }),
  body: fc.record({
    raw: fc.constantFrom("", '{"a":1}', '{"a":[1,"b"]}', "q=a&b=c"),
    size: fc.nat(9),
    truncated: fc.boolean(),
  }),
});

const quoted = word.map((text) => JSON.stringify(text).replaceAll("\\u0000", "\\x00"));
const int = fc.constantFrom(
  "0",
  "1",
  "-1",
  "7",
  "010",
  "0x10",
  "13335",
  "9223372036854775807",
  "-9223372036854775808",
);
const order = fc.constantFrom("eq", "ne", "lt", "le", "gt", "ge", "==", "!=", "<", "<=", ">", ">=");
const pattern = fc.constantFrom(
  "a",
  "^a",
  "b$",
  "(?i)A",
  "a.b",
  "^$",
  "[^a]",
  "(a|b)+$",
  "(?u)é",
  "\\bb",
  "(?m)^a$",
);
const wildcard = fc.constantFrom("*", "a*", "*b", "*a*", "a*b", "*A*b*", "", "a");
const ipSet = fc.constantFrom(
  "10.0.0.0/24",
  "10.0.0.1..10.0.0.9",
  "2001:db8::/32",
  "200.0.0.1",
  "::/0",
  "0.0.0.0/1",
);
const ip = fc.constantFrom("10.0.0.1", "10.0.0.2", "200.0.0.1", "2001:db8::1", "::");
const setOf = (items: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.array(items, { maxLength: 11 }).map((members) => `{${members.join(" ")}}`);

interface Expressions {
  bytes: string;
  int: string;
  list: string;
  array: string;
  bool: string;
}

export const anyExpression: fc.Arbitrary<string> = fc.letrec((tie: fc.LetrecTypedTie<Expressions>) => {
  const f = (template: string, ...args: fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
    fc.tuple(...args).map((texts) => texts.reduce((text, arg) => text.replace("§", () => arg), template));
  const {
    bytes,
    int: number,
    list,
    array,
    bool,
  } = {
    bytes: tie("bytes"),
    int: tie("int"),
    list: tie("list"),
    array: tie("array"),
    bool: tie("bool"),
  };
  const depthSize = { maxDepth: 4, depthIdentifier: "expression", withCrossShrink: true };
  return {
    bytes: fc.oneof(
      depthSize,
      fc.constantFrom(
        ...[
          "http.host",
          "http.request.uri",
          "http.request.uri.path",
          "http.request.uri.query",
          "http.user_agent",
        ],
        ...["http.cookie", "ip.src.country", "http.request.method", "http.request.body.raw"],
        ...[
          'http.request.headers["accept"][0]',
          'http.request.headers["x-a"][1]',
          'http.request.uri.args["q"][0]',
        ],
      ),
      f("lower(§)", bytes),
      f("upper(§)", bytes),
      f("concat(§, §)", bytes, fc.oneof(bytes, quoted)),
      f("substring(§, §)", bytes, fc.constantFrom("0", "1", "-1", "9")),
      f("url_decode(§)", bytes),
      f("remove_bytes(§, §)", bytes, quoted),
      f("encode_base64(§)", bytes),
      f("to_string(§)", number),
      f("to_string(§)", bool),
      f(
        "join(§, §)",
        fc.constantFrom('http.request.headers["accept"]', "http.request.uri.args.values"),
        quoted,
      ),
      f('split(§, ",", 2)[§]', bytes, fc.constantFrom("0", "1")),
      f('lookup_json_string(§, "a", 1)', bytes),
    ),
    int: fc.oneof(
      depthSize,
      fc.constantFrom(
        "cf.bot_management.score",
        "ip.src.asnum",
        "http.request.body.size",
        "http.request.timestamp.sec",
      ),
      f("len(§)", bytes),
      fc.constant('len(http.request.headers["accept"])'),
      f('lookup_json_integer(§, "a")', bytes),
    ),
    // A mapped list of bytes, the left side of a comparison inside any() or all().
    list: fc.oneof(
      depthSize,
      fc.constantFrom(
        ...['http.request.headers["accept"][*]', "http.request.headers[*][*]", "http.request.headers[*][1]"],
        ...[
          'http.request.headers["x-miss"][*]',
          "http.request.uri.args.values[*]",
          'http.request.uri.args["q"][*]',
        ],
      ),
      f("lower(§)[*]", list),
      f("concat(§, §)[*]", list, bytes),
      f("substring(§, §)[*]", list, fc.constantFrom("0", "1")),
      f('split(§, ",", 3)[*]', bytes),
      f('split(§, ",", 3)[*][*]', list),
    ),
    array: fc.oneof(
      depthSize,
      f("§ § §", list, order, quoted),
      f("§ contains §", list, quoted),
      f("§ in §", list, setOf(quoted)),
      f(
        "§ wildcard §",
        list,
        wildcard.map((text) => JSON.stringify(text)),
      ),
      f(
        "§ matches §",
        list,
        pattern.map((text) => `r"${text}"`),
      ),
      f("len(§)[*] § §", list, order, int),
      f("not §", array),
      f("(§ and §)", array, array),
      f("(§ or §)", array, array),
      f("(§ xor §)", array, array),
      f("starts_with(§, §)", list, quoted),
    ),
    bool: fc.oneof(
      depthSize,
      fc.constantFrom("ssl", "cf.client.bot", "http.request.body.truncated"),
      f("§ § §", bytes, order, quoted),
      f("§ contains §", bytes, quoted),
      f("§ in §", bytes, setOf(quoted)),
      f(
        "§ matches §",
        bytes,
        pattern.map((text) => `r"${text}"`),
      ),
      f(
        "§ wildcard §",
        bytes,
        wildcard.map((text) => JSON.stringify(text)),
      ),
      f(
        "§ strict wildcard §",
        bytes,
        wildcard.map((text) => JSON.stringify(text)),
      ),
      f("starts_with(§, §)", bytes, fc.oneof(quoted, bytes)),
      f("ends_with(§, §)", bytes, quoted),
      f("§ § §", number, order, int),
      f("§ in §", number, setOf(fc.constantFrom("1", "7", "1..9", "-5..5", "13335", "100..99999"))),
      f("§ & §", number, int),
      f("ip.src § §", order, ip),
      f("ip.src in §", setOf(ipSet)),
      f("cidr(ip.src, §, 64) § §", fc.constantFrom("8", "24", "32"), order, ip),
      f("any(§)", array),
      f("all(§)", array),
      f("not §", bool),
      f("(§ and § or §)", bool, bool, bool),
      f("(§ xor § and §)", bool, bool, bool),
    ),
  };
}).bool;
