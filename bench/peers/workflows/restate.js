// The workflows of the benchmark as a Restate service; prints its port when it listens.
import * as restate from "@restatedev/restate-sdk";
import { createServer } from "node:http2";

const steps = async (ctx, count) => {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += await ctx.run(`s${i}`, async () => i);
  return sum;
};
const bench = restate.service({
  name: "Bench",
  handlers: { one: (ctx) => steps(ctx, 1), ten: (ctx) => steps(ctx, 10) },
});
const waiting = restate.workflow({
  name: "Waiting",
  handlers: {
    run: async (ctx, witness) => {
      const sent = await ctx.promise("go");
      await fetch(witness + sent);
      return sent;
    },
    send: async (ctx, value) => {
      await ctx.promise("go").resolve(value);
    },
  },
});
/** Lateness of each wake, in milliseconds, since the last read. */
const late = [];
const sleeping = restate.service({
  name: "Sleeping",
  handlers: {
    sleep: async (ctx, at) => {
      await ctx.sleep(Math.max(0, at - Date.now()));
      late.push(await ctx.run("late", async () => Date.now() - at));
    },
    read: async () => late.splice(0),
  },
});
/** Slow steps; the witness server gets a request at the start of each step and at the end. */
const crashing = restate.workflow({
  name: "Crashing",
  handlers: {
    run: async (ctx, { witness, steps, stepMs }) => {
      const report = async (at) => (await fetch(`${witness}/${ctx.key}/${at}`)).text();
      let sum = 0;
      for (let i = 0; i < steps; i++)
        sum += await ctx.run(`s${i}`, async () => {
          await report(i);
          await new Promise((resolve) => setTimeout(resolve, stepMs));
          return i;
        });
      await report(steps);
      return sum;
    },
  },
});
const services = [bench, waiting, sleeping, crashing];
const handler = restate.createEndpointHandler({ services, logger: () => {} });
const server = createServer(handler);
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
