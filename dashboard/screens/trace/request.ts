import { quote } from "../../code/quote.ts";
import type { Call } from "../../core/client.ts";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { headersOf } from "../../core/typed-request.ts";
import { setSearch, useLocation, useSearch } from "../../core/router.ts";

const names = ["url", "method", "headers", "body", "ip", "country", "score", "expression"] as const;
/** The traced request, as typed. The URL of the screen contains all of it. */
export type Asked = Record<(typeof names)[number], string>;

/** The request that was traced last on each screen, until the page is loaded again. */
const lastAsked = new Map<string, Record<string, string>>();

/** Writes the last request into an address without one, so that a rule can be changed between two traces. */
function useLastAsked(): void {
  const { path, query } = useLocation();
  useLayoutEffect(() => {
    const last = lastAsked.get(path);
    if (last !== undefined && !names.some((name) => query.has(name))) setSearch(last);
  }, [path]);
  useEffect(() => {
    lastAsked.set(path, Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""])));
  });
}

/** The request in the address, and a function that changes one of its values. */
export function useAsked(url: string): [Asked, (name: keyof Asked) => (value: string) => void] {
  useLastAsked();
  const byDefault: Partial<Asked> = { url, method: "GET" };
  const values = names.map((name) => [name, useSearch(name, byDefault[name] ?? "")] as const);
  const setters = new Map(values.map(([name, [, set]]) => [name, set]));
  return [
    Object.fromEntries(values.map(([name, [value]]) => [name, value])) as Asked,
    (name) => (value) => setters.get(name)!(value),
  ];
}

/** The call that traces the request. It sends nothing to the origin. */
export const callOf = (account: string, asked: Asked): Call => ({
  op: "POST /accounts/{account_id}/request-tracer/trace",
  params: { account_id: account },
  body: {
    method: asked.method,
    url: asked.url,
    headers: headersOf(asked.headers),
    ...(asked.body === "" ? {} : { body: { plain_text: asked.body } }),
    context: {
      ...(asked.ip === "" ? {} : { client_ip: asked.ip }),
      ...(asked.score === "" ? {} : { bot_score: Number(asked.score) }),
      ...(asked.country === "" ? {} : { geoloc: { iso_code: asked.country.toUpperCase() } }),
    },
    skip_response: true,
    ...(asked.expression === "" ? {} : { expression: asked.expression }),
  },
});

/** A line of a shell that evaluates an expression for the request without a server, for a test. */
export function testOf(expression: string, { url, method, headers, body, ip }: Asked): string {
  const host = URL.parse(url)?.host ?? "";
  const request = [
    `${method} ${url} HTTP/1.1`,
    `host: ${host}`,
    ...headers.split("\n").filter(Boolean),
    "",
    body,
  ];
  const address = ip === "" ? "" : ` --ip ${ip}`;
  return `printf '%s\\r\\n' ${request.map(quote).join(" ")} |\n  selvedge rules trace ${quote(expression)}${address} --request -`;
}

/** Headers that the edge adds for a script, and those whose values a live log hides. */
const notTyped = /^(cf-|x-forwarded-|x-real-ip$|host$|content-length$|connection$|authorization$|cookie$)/;

/** A request of a live log. The edge sent the visitor's address and country to the script in headers. */
export function askedOf({
  url,
  method,
  headers,
}: {
  url: string;
  method: string;
  headers: Readonly<Record<string, string>>;
}): Partial<Asked> {
  const lines = Object.entries(headers).filter(([name]) => !notTyped.test(name));
  return {
    url,
    method,
    headers: lines.map(([name, value]) => `${name}: ${value}`).join("\n"),
    ip: headers["cf-connecting-ip"] ?? "",
    country: headers["cf-ipcountry"] ?? "",
  };
}

/** The address of the screen for a request, such as one of a live log. */
export function tracePath(account: string, asked: Partial<Asked>): string {
  const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== ""));
  return `/${account}/trace?${query.toString()}`;
}
