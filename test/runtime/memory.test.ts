import { expect, it } from "vitest";
import { cellPids, residentMebibytes } from "./cell-processes.ts";
import { startHosting } from "./platform.ts";

it("garbage of requests in a cell is collected early", async () => {
  const hosting = await startHosting({ cells: 1 });
  try {
    await hosting.deploy("hello", `export default { fetch: () => new Response("hello") };`);
    const ask = async (count: number): Promise<number> => {
      let left = count;
      const client = async (): Promise<void> => {
        while (left-- > 0) expect((await hosting.ask("hello")).body).toBe("hello");
      };
      await Promise.all(Array.from({ length: 16 }, client));
      return Math.max(...cellPids(process.pid).map(residentMebibytes));
    };
    const before = await ask(2000);
    const after = await ask(12_000);
    // Without it the growth is more than a hundred.
    expect(after - before).toBeLessThan(60);
  } finally {
    await hosting.close(0);
  }
});
