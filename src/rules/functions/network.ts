import { networkOf } from "../values/ip.ts";
import type { IpValue, Value } from "../values/types.ts";
import type { FunctionDefinition, FunctionParameter } from "./definition.ts";

const address: FunctionParameter = { types: ["Ip"], kind: "Field" };

function bits(max: number): FunctionParameter {
  return {
    types: ["Int"],
    check: (value) =>
      (value as number) >= 1 && (value as number) <= max
        ? undefined
        : `expected network bits between 1 and ${max}, but got ${Number(value)}`,
  };
}

/**
 * The network of an address; undefined if the number of bits, which may come from a field, is out of range.
 */
function network(ip: Value, count: Value, max: number): IpValue | undefined {
  const number = Number(count);
  return number >= 1 && number <= max ? networkOf(ip as IpValue, number) : undefined;
}

export const networkFunctions: readonly FunctionDefinition[] = [
  {
    name: "cidr",
    parameters: [address, bits(32), bits(128)],
    returns: "Ip",
    call: ([ip, v4, v6]) => (typeof ip === "number" ? network(ip, v4!, 32) : network(ip!, v6!, 128)),
  },
  {
    name: "cidr6",
    parameters: [address, bits(128)],
    returns: "Ip",
    call: ([ip, v6]) => (typeof ip === "number" ? ip : network(ip!, v6!, 128)),
  },
];
