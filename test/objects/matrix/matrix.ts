import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { ownerToken } from "../../helpers/server.ts";
import type { Calls, Outside } from "../../runtime/platform.ts";

/* The features of objects: rows.js calls each one, and `expected` has the results. */
const code = readFileSync(new URL("rows.js", import.meta.url), "utf8");
const classes = [
  { type: "durable_object_namespace", name: "ROOMS", class_name: "Room" },
  { type: "durable_object_namespace", name: "CALLERS", class_name: "Caller" },
];
const metadata = { migrations: { new_tag: "v1", new_sqlite_classes: ["Room", "Caller"] } };

/** The bindings that rows need, of things that are made once. */
export async function matrixBindings(
  api: string,
  hosting: Calls,
  outside: Outside,
): Promise<Record<string, unknown>[]> {
  const create = async (path: string, body: object): Promise<{ uuid: string }> => {
    const response = await fetch(`${api}/accounts/${hosting.account}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${ownerToken}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return ((await response.json()) as { result: { uuid: string } }).result;
  };
  const kv = await hosting.createKv("matrix");
  await create("/queues", { queue_name: "matrix" });
  const { uuid } = await create("/d1/database", { name: "matrix" });
  await hosting.createNamespace("shops");
  await hosting.deployCustomer("shops", "shop", `export default { fetch: () => new Response("a shop") };`);
  return [
    { type: "kv_namespace", name: "KV", namespace_id: kv },
    { type: "queue", name: "QUEUE", queue_name: "matrix" },
    { type: "d1", name: "DB", id: uuid },
    { type: "dispatch_namespace", name: "SHOPS", namespace: "shops" },
    { type: "plain_text", name: "OUTSIDE", text: outside.url },
  ];
}

/** Deploys the rows as a script. */
export async function deployRows(
  hosting: Calls,
  name: string,
  more: Record<string, unknown>[],
): Promise<void> {
  // A script must exist before it can be bound to itself.
  await hosting.deploy(name, { code, bindings: classes, metadata });
  const self = { type: "service", name: "SELF", service: name, entrypoint: "Named" };
  await hosting.deploy(name, { code, bindings: [...classes, ...more, self] });
}

/** The results of rows, by default all, for a caller in a place. */
export async function resultsOf(
  hosting: Calls,
  script: string,
  place: string,
  rows: readonly string[] = Object.keys(expected),
): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  const left = rows.values();
  const askAll = async (): Promise<void> => {
    for (const row of left) found[row] = JSON.parse((await hosting.ask(script, `/${place}/${row}`)).body);
  };
  await Promise.all(Array.from({ length: 8 }, askAll));
  return found;
}

/** Text of an error over RPC, with the properties that workerd adds to errors of objects. */
const fromObject = (thrown: string, more: object = {}): object => ({
  thrown,
  remote: true,
  durableObjectId: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
  ...more,
});
const missing = (name: string): object =>
  fromObject(`TypeError: The RPC receiver does not implement the method "${name}".`);
const notCloned = (message: string): object =>
  expect.objectContaining({ thrown: `DataCloneError: ${message}`, code: 25 }) as object;
const notSerialized = (name: string): object =>
  notCloned(`Could not serialize object of type "${name}". This type does not support serialization.`);

const boom = fromObject("RangeError: too much", { detail: 7, list: [1] });
export const expected: Record<string, unknown> = {
  echo: [5, true, "/a+/g", "10", true, null, [1, 2], true, "as value", true, true, { "a b": [1, [2]] }],
  large: 5_000_000,
  property: "room property",
  propertyPath: [7],
  pipelined: [1, 8, 3],
  target: [6, 6],
  nestedTarget: [1, 42],
  callback: 30,
  targetGiven: [2, 3, 3],
  functionReturned: 5,
  promiseGiven: notSerialized("RpcPromise"),
  stream: "streamed",
  streamGiven: "given",
  writableGiven: ["closed", "written"],
  writable: "sunk",
  response: [201, "1", "a response"],
  responseGiven: "202 mine",
  request: ["POST", "http://x/y", "2", "asked"],
  requestGiven: "PUT http://x/z 3 body",
  headers: [
    ["a", "1"],
    ["b", "2"],
  ],
  fetch: { method: "DELETE", pathname: "/path", name: "room fetch" },
  fetchUpload: ["300000", "big"],
  fetchStream: "abc",
  fetchRedirect: "/elsewhere",
  fetchBoom: { thrown: "RangeError: fetch boom", name: "RangeError" },
  stubGiven: "through",
  stubFetched: { method: "GET", pathname: "/other", name: "given" },
  stubReturned: "returned",
  stubPipelined: "piped",
  stubFetchedHere: { method: "GET", pathname: "/r", name: "returned" },
  stubsNested: ["x1", "x2"],
  stubSentOn: "on",
  stubKept: "still",
  serviceGiven: ["hello you", "named"],
  serviceReturned: "hello me",
  stubOfTarget: [2, 3, 3],
  boom,
  boomText: "Error: only text",
  boomLater: fromObject("TypeError: later"),
  boomCause: ["outer", "inner"],
  boomBack: "SyntaxError: from the caller 9",
  absent: missing("absent"),
  own: missing("serial"),
  privateMethod: { thrown: "TypeError: Illegal constructor" },
  reserved: missing("alarm"),
  // Values that throw while they are copied.
  getterThrows: fromObject("Error: getter"),
  getterGiven: { thrown: "Error: mine" },
  getterInMap: fromObject("Error: getter"),
  badGetter: fromObject("RangeError: bad getter"),
  badTarget: { thrown: "Error: bad target", remote: true },
  badStream: { thrown: "Error: ReadableStream received over RPC disconnected prematurely." },
  badStored: ["stored", "stored"],
  badErrorOwn: fromObject("Error: bad error"),
  deep: fromObject("Error: deep"),
  symbol: notCloned("Symbol(s) could not be cloned."),
  weak: notCloned("#<WeakMap> could not be cloned."),
  instance: notSerialized("Own"),
  idGiven: notSerialized("DurableObjectId"),
  namespaceGiven: notSerialized("DurableObjectNamespace"),
  kvGiven: notSerialized("KvNamespace"),
  identity: {
    id: expect.stringMatching(/^[0-9a-f]{64}$/),
    name: "room identity",
    equals: true,
    props: {},
    isReady: true,
  },
  stubIdentity: ["room stubIdentity", true],
  abort: [fromObject("Error: Error: gone on purpose", { durableObjectReset: true }), true],
  abortSilently: [true, true],
  waitUntil: ["at once", "done"],
  block: ["value", ["in", "out"]],
  blockFails: ["Error: blocked failed", true],
  sql: {
    rowsWritten: true,
    columnNames: ["id", "text"],
    next: { id: 1, text: "a" },
    rest: [{ id: 2, text: "b" }],
    raw: [["a"], ["b"]],
    one: { n: 2 },
    size: true,
    blob: 1,
  },
  sqlRefused: {
    attach: "not authorized: SQLITE_AUTH",
    begin: expect.stringMatching(/^To execute a transaction, please use the state\.storage\.transaction\(\)/),
    hidden: "no such table: _cf_KV: SQLITE_ERROR",
    syntax: 'near "selec": syntax error at offset 0: SQLITE_ERROR',
    one: "Expected exactly one result from SQL query, but got multiple results.",
    pragma: "not authorized: SQLITE_AUTH",
  },
  transactionSync: ["kept", "back", [1]],
  transaction: ["undone", [["t1", 1]]],
  kvSync: [{ a: "1970-01-01T00:00:00.000Z" }, ["k2", "k1"], true, null, false],
  kvAsync: [
    [["m", 1]],
    [
      ["a1", 1],
      ["a3", 3],
    ],
    ["a2", "a3"],
    1,
    null,
  ],
  deleteAll: 0,
  out: {
    fetch: "from outside",
    kv: "from an object",
    d1: true,
    service: "named",
    rpc: "hello object",
    dispatch: "a shop",
    object: "hi",
  },
};
