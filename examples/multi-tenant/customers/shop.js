/** A customer's script: counts visits in its own key-value namespace, and fetches prices from suppliers. */
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    switch (url.pathname) {
      case "/": {
        const visits = Number((await env.STORE.get("visits")) ?? 0) + 1;
        await env.STORE.put("visits", String(visits));
        return new Response(`${env.NAME} has had ${visits} visits.\n`);
      }
      case "/prices": {
        const suppliers = url.searchParams.getAll("supplier");
        const answers = await Promise.all(suppliers.map((supplier) => fetch(supplier)));
        const prices = await Promise.all(
          answers.map(async (answer) => ({ status: answer.status, text: await answer.text() })),
        );
        return Response.json(prices);
      }
      case "/sort": {
        // A bug: this loop never ends.
        for (const list = [3, 1, 2]; ;) list.sort((a, b) => a - b);
      }
      default:
        return new Response("not found\n", { status: 404 });
    }
  },
};
