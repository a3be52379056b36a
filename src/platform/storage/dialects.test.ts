import { expect, it } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { onOneNode } from "./dialects.ts";

describeStorage("a sweep", (openFresh) => {
  it("runs on one node at a time, and again after it ended or failed", async () => {
    const storage = await openFresh();
    const end = Promise.withResolvers<string>();
    const isBegun = Promise.withResolvers<void>();
    const first = onOneNode(storage, "kv", async () => {
      isBegun.resolve();
      return end.promise;
    });
    await isBegun.promise;
    const second = await onOneNode(storage, "kv", async () => "second");
    expect(second).toBe(storage.engine === "postgres" ? undefined : "second");
    expect(await onOneNode(storage, "images", async () => "other")).toBe("other");
    end.resolve("first");
    expect(await first).toBe("first");
    const failing = onOneNode(storage, "kv", async () => Promise.reject(new Error("the store is away")));
    await expect(failing).rejects.toThrow("the store is away");
    expect(await onOneNode(storage, "kv", async () => "third")).toBe("third");
    await storage.close();
  });
});
