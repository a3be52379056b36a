/** Takes orders over HTTP, works on them in batches from a queue, and reports once a day. */
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (request.method === "GET") return new Response((await env.DONE.get(pathname)) ?? "not done yet\n");
    await env.JOBS.send({ path: pathname, body: await request.text() });
    return new Response("accepted\n", { status: 202 });
  },

  // A message that is neither acknowledged nor retried counts as done when the handler returns.
  async queue(batch, env) {
    for (const message of batch.messages) {
      const { path, body } = message.body;
      if (body === "") message.retry({ delaySeconds: 1 });
      else await env.DONE.put(path, `done: ${body}\n`);
    }
  },

  async scheduled(controller, env) {
    const { keys } = await env.DONE.list();
    console.log(`${controller.cron}: ${keys.length} orders are done`);
  },
};
