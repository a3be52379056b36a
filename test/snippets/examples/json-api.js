// An endpoint of its own, without any origin.
export default {
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname !== "/api/sum") return Response.json({ error: "not found" }, { status: 404 });
    if (request.method === "GET") {
      const numbers = searchParams.getAll("n").map(Number);
      return Response.json({ sum: numbers.reduce((sum, number) => sum + number, 0) });
    }
    try {
      const { numbers } = await request.json();
      return Response.json({ sum: numbers.reduce((sum, number) => sum + number, 0) });
    } catch {
      return Response.json({ error: "expected JSON with numbers" }, { status: 400 });
    }
  },
};
