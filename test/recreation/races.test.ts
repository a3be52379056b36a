import { expect, it } from "vitest";
import { describeRecreation } from "./platform.ts";

/**
 * Resources that refer to a script are created while the script is deleted. They must exist with it or not at
 * all.
 */
const rounds = 12;

describeRecreation("things made while their script is deleted", {}, (at) => {
  it("leaves no consumer, route, domain or schedule without its script", async () => {
    const { own, nodes } = at();
    const other = nodes.at(-1)!;
    const zone = await own.server.newZone("racing.example");
    const { queue_id: queue } = (await own.api("POST", "/queues", { queue_name: "racing" })) as Record<
      string,
      string
    >;
    const counts = { made: 0, refused: 0 };
    for (let round = 0; round < rounds; round++) {
      const name = `racing-${round}`;
      await own.deploy(name, "export default { fetch: () => new Response(), queue() {}, scheduled() {} };");
      const script = `/workers/scripts/${name}`;
      await expect.poll(async () => (await other.answer("GET", `${script}/schedules`)).status).toBe(200);
      const making = [
        other.answer("POST", `/queues/${queue}/consumers`, { type: "worker", script_name: name }),
        other.server.call("POST", `/zones/${zone}/workers/routes`, {
          pattern: `racing.example/${round}`,
          script: name,
        }),
        other.answer("PUT", `${script}/schedules`, [{ cron: "0 0 1 1 *" }]),
        other.answer("PUT", "/workers/domains", {
          hostname: `www${round}.racing.example`,
          service: name,
          zone_id: zone,
        }),
      ];
      const [{ status }, ...answers] = await Promise.all([own.answer("DELETE", script), ...making]);
      expect(status).toBe(200);
      for (const answer of answers) counts[answer.body.success ? "made" : "refused"]++;
      for (const answer of answers) expect(answer.status).toBeLessThan(500);
      const left = [
        await own.api("GET", `/queues/${queue}/consumers`),
        (await own.server.call("GET", `/zones/${zone}/workers/routes`)).body.result,
        await own.api("GET", "/workers/domains"),
      ] as { script?: string; script_name?: string; service?: string }[][];
      const named = left.flat().map((each) => each.script ?? each.script_name ?? each.service);
      expect(named).not.toContain(name);
      await own.deploy(name, "export default { fetch: () => new Response(), scheduled() {} };");
      expect(await own.api("GET", `${script}/schedules`)).toMatchObject({ schedules: [] });
    }
    expect(counts.made + counts.refused).toBe(rounds * 4);
  });
});
