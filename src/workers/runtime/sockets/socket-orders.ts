import { MalformedError, readObject } from "../../../sandbox/gateway/cell-messages.ts";

/**
 * An order of a script's wrapper about a socket: open it, write the body of the request, end the writing
 * side, start TLS, close it. The answer to `open` and to `tls` is the data that the peer sends.
 */
export type SocketOrder =
  | {
      do: "open";
      hostname: string;
      port: number;
      transport: Transport;
      allowHalfOpen: boolean;
      servername: string;
    }
  | { do: "write" | "end" | "close"; id: string }
  | { do: "tls"; id: string; servername: string };

export type Transport = "off" | "on" | "starttls";

/** The maximum length of a DNS name, with brackets around an address. */
const hostnameLengthMax = 255;
const idLengthMax = 20;

/** Parses an order, which is hostile input. Throws a MalformedError. */
export function readOrder(text: string): SocketOrder {
  const given = readObject(text, "the socket");
  const name = (key: string, lengthMax = hostnameLengthMax): string => {
    const value = given[key];
    if (typeof value === "string" && value.length <= lengthMax && /^[\w.:[\]-]*$/.test(value)) return value;
    throw new MalformedError(`Expected a name or an address for ${key} of the socket.`);
  };
  const { do: what, port, transport, allowHalfOpen } = given;
  if (what === "tls") return { do: what, id: name("id", idLengthMax), servername: name("servername") };
  if (what === "write" || what === "end" || what === "close")
    return { do: what, id: name("id", idLengthMax) };
  if (what !== "open") throw new MalformedError("Expected open, write, end, tls or close for the socket.");
  if (typeof port !== "number" || !Number.isInteger(port) || port < 1 || port > 65535)
    throw new MalformedError(`Expected a port from 1 to 65535 but received ${JSON.stringify(port)}.`);
  if (transport !== "off" && transport !== "on" && transport !== "starttls")
    throw new MalformedError("Expected off, on or starttls for the transport of the socket.");
  const hostname = name("hostname");
  if (hostname === "") throw new MalformedError("Expected a host for the socket.");
  return {
    do: what,
    hostname,
    port,
    transport,
    allowHalfOpen: allowHalfOpen === true,
    servername: name("servername"),
  };
}
