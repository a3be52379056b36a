import { keyNumber, parseParameters } from "../../records/types/svcb-parameters.ts";
import { ipv4Bytes, ipv6Bytes } from "./address.ts";
import { ByteWriter } from "./byte-writer.ts";

/** The wire form of the parameters of an HTTPS or SVCB record (RFC 9460 §2.2), from their stored text. */
export function serviceParameterBytes(text: string): Buffer {
  const parameters = parseParameters(text);
  if (typeof parameters === "string") throw new Error(`a stored record has wrong parameters: ${parameters}`);
  const writer = new ByteWriter();
  for (const { name, value } of parameters) {
    const bytes = valueBytes(name, value);
    writer.uint16(keyNumber(name)!).uint16(bytes.length).bytes(bytes);
  }
  return writer.done();
}

function valueBytes(name: string, value: string): Buffer {
  const items = value.split(",");
  switch (name) {
    case "mandatory": {
      const writer = new ByteWriter();
      for (const item of items) writer.uint16(keyNumber(item)!);
      return writer.done();
    }
    case "alpn": {
      const writer = new ByteWriter();
      for (const item of items) writer.characters(item);
      return writer.done();
    }
    case "port":
      return new ByteWriter().uint16(Number(value)).done();
    case "ipv4hint":
      return Buffer.concat(items.map(ipv4Bytes));
    case "ipv6hint":
      return Buffer.concat(items.map(ipv6Bytes));
    case "ech":
      return Buffer.from(value, "base64");
    default:
      return Buffer.from(value);
  }
}
