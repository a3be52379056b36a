// Every way to make and change a response.
export default {
  async fetch(request) {
    const { pathname, origin } = new URL(request.url);
    if (pathname === "/json") return Response.json({ made: true }, { status: 201, headers: { "x-a": "1" } });
    if (pathname === "/301") return Response.redirect(`${origin}/moved`, 301);
    if (pathname === "/302") return Response.redirect(`${origin}/found`, 302);
    if (pathname === "/text") return new Response("text", { status: 202, statusText: "Taken" });
    const response = await fetch(request);
    const { status, statusText, ok, redirected } = response;
    const answer = new Response(response.body, { status, statusText, headers: response.headers });
    answer.headers.set("x-properties", JSON.stringify({ status, statusText, ok, redirected }));
    answer.headers.append("x-list", "1");
    answer.headers.append("x-list", "2");
    answer.headers.delete("x-powered-by");
    return answer;
  },
};
