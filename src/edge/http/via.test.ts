import { fc } from "../../../test/helpers/properties.ts";
import { describe, expect, test } from "vitest";
import { newCallTree, ViaHeader } from "./via.ts";

describe("the header that counts hops", () => {
  const node = new ViaHeader("key");

  test("is read by the node that wrote it, with its call tree, and by other nodes", () => {
    const tree = newCallTree();
    const value = node.write({ hops: 3, tree }, "a.example");
    expect(node.read(value, "a.example")).toEqual({ hops: 3, tree });
    expect(node.read(value, "a.example")!.tree).toBe(tree);
    expect(node.read(node.write({ hops: 4, tree }, "b.example"), "b.example")!.tree).toBe(tree);
    const other = new ViaHeader("key");
    expect(other.read(value, "a.example")!.hops).toBe(3);
    expect(other.read(value, "a.example")!.tree).toBe(other.read(value, "a.example")!.tree);
  });

  test.each([
    ["http://A.Example.:8787/", "a.example"],
    ["https://a.example/", "a.example"],
    ["http://[::1]:80/", "::1"],
    ["http://MÜNCHEN.example./", "xn--mnchen-3ya.example"],
  ])("is accepted for any spelling of the host: %s", (url, host) => {
    const { hostname, host: authority } = new URL(url);
    for (const name of [hostname, authority])
      expect(node.read(node.write({ hops: 1, tree: newCallTree() }, name), host)?.hops).toBe(1);
  });

  test("is rejected for another host, from another installation, or with a changed count or signature", () => {
    const value = node.write({ hops: 16, tree: newCallTree() }, "a.example");
    expect(node.read(value, "b.example")).toBeUndefined();
    expect(new ViaHeader("other").read(value, "a.example")).toBeUndefined();
    const signature = value.length - 22;
    fc.assert(
      fc.property(
        // The last character of 128 bits in base64url has bits that mean nothing; the id is not signed.
        fc.oneof(fc.nat("16.".length - 1), fc.integer({ min: signature - 1, max: value.length - 2 })),
        fc.constantFrom(...Array.from("0123456789.aZ-_ ,")),
        (at, character) => {
          fc.pre(value[at] !== character);
          const forged = value.slice(0, at) + character + value.slice(at + 1);
          expect(node.read(forged, "a.example")).toBeUndefined();
        },
      ),
    );
    for (const text of ["", "1", "0" + value, "1..", `${value}, ${value}`, "x".repeat(10_000)])
      expect(node.read(text, "a.example")).toBeUndefined();
  });

  test("keeps the count with an id that another made, and starts a tree for it", () => {
    const tree = newCallTree();
    const value = node.write({ hops: 7, tree }, "a.example");
    const id = "A".repeat(22);
    const read = node.read(value.replace(tree.id!, id), "a.example")!;
    expect(read).toEqual({ hops: 7, tree: { ...newCallTree(), id } });
    expect(read.tree).not.toBe(tree);
  });
});
