import { describe, expect, test } from "vitest";
import { MalformedError } from "../../../sandbox/gateway/cell-messages.ts";
import { readOrder } from "./socket-orders.ts";

const open = { do: "open", hostname: "db.example", port: 5432, transport: "off" };

describe("an order of a cell", () => {
  test("is parsed as intended", () => {
    expect(readOrder(JSON.stringify({ ...open, servername: "", allowHalfOpen: true, more: 1 }))).toEqual({
      ...open,
      servername: "",
      allowHalfOpen: true,
    });
    expect(readOrder('{"do":"tls","id":"1","servername":"x"}')).toEqual({
      do: "tls",
      id: "1",
      servername: "x",
    });
    for (const what of ["write", "end", "close"])
      expect(readOrder(JSON.stringify({ do: what, id: "7" }))).toEqual({ do: what, id: "7" });
  });

  test.each([
    "",
    "null",
    "[]",
    "{}",
    '{"do":"listen","id":"1"}',
    '{"do":"write"}',
    '{"do":"write","id":1}',
    JSON.stringify({ do: "write", id: "1".repeat(21) }),
    JSON.stringify({ do: "tls", id: "1" }),
    ...[
      { hostname: undefined },
      { hostname: "" },
      { hostname: "x".repeat(256) },
      { hostname: "a\r\nb" },
      { hostname: "/run/x.sock" },
      { port: 0 },
      { port: 65536 },
      { port: 1.5 },
      { port: "80" },
      { transport: "tls" },
      { servername: undefined },
      { servername: ["x"] },
    ].map((wrong) => JSON.stringify({ ...open, servername: "", ...wrong })),
  ])("is refused: %s", (text) => {
    expect(() => readOrder(text)).toThrow(MalformedError);
  });
});
