import type { FunctionDefinition } from "./definition.ts";

const roundsMax = 16;
const queryFields = ["http.request.uri.query", "raw.http.request.uri.query"];

/** Decodes `%XX`, `+` for a space, and with `unicode` also `%uXXXX` to UTF-8. Malformed sequences stay. */
export function urlDecode(text: string, unicode = false): string {
  const spaced = text.replaceAll("+", " ");
  if (!spaced.includes("%")) return spaced;
  return spaced.replace(/(?:%u[0-9A-Fa-f]{4})+|%[0-9A-Fa-f]{2}/g, (escape) => {
    if (escape[1] !== "u") return String.fromCharCode(Number.parseInt(escape.slice(1), 16));
    if (!unicode) return escape;
    const units = escape
      .slice(2)
      .split("%u")
      .map((unit) => String.fromCharCode(Number.parseInt(unit, 16)));
    return Buffer.from(units.join(""), "utf8").toString("latin1");
  });
}

export const urlFunctions: readonly FunctionDefinition[] = [
  {
    name: "url_decode",
    parameters: [
      { types: ["Bytes"] },
      {
        types: ["Bytes"],
        kind: "Literal",
        check: (value) =>
          /^[ru]*$/.test(value as string) ? undefined : 'options must be made of "r" and "u"',
      },
    ],
    optional: 1,
    returns: "Bytes",
    moreWork: ([source, options]) =>
      ((options ?? "") as string).includes("r") ? (source as string).length * (roundsMax / 2) : 0,
    call: ([source, options]) => {
      const flags = (options ?? "") as string;
      const unicode = flags.includes("u");
      let text = urlDecode(source as string, unicode);
      // Recursive decoding stops after a limited number of rounds.
      for (let round = 1; flags.includes("r") && round < roundsMax; round++) {
        const next = urlDecode(text, unicode);
        if (next === text) break;
        text = next;
      }
      return text;
    },
  },
  {
    name: "remove_query_args",
    parameters: [{ types: ["Bytes"], kind: "Field" }, { types: ["Bytes"] }],
    variadic: true,
    returns: "Bytes",
    checkArgument: (index, argument) =>
      index === 0 && !queryFields.includes(argument.field ?? "")
        ? `expected ${queryFields.join(" or ")}`
        : undefined,
    call: ([query, ...names]) =>
      (query as string)
        .split("&")
        .filter((pair) => !names.includes(pair.split("=", 1)[0]))
        .join("&"),
  },
];
