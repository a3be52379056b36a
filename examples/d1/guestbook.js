/** POST adds an entry to the guest book; GET lists the newest ones. */
export default {
  async fetch(request, env) {
    if (request.method === "POST") {
      const { name, text } = await request.json();
      await env.BOOK.prepare("INSERT INTO entries (name, text) VALUES (?, ?)").bind(name, text).run();
      return new Response(null, { status: 201 });
    }
    const { results } = await env.BOOK.prepare(
      "SELECT name, text FROM entries ORDER BY id DESC LIMIT 10",
    ).all();
    return Response.json(results);
  },
};
