// The second of two in a row: sees the request as the first has left it.
export default {
  async fetch(request) {
    if (new URL(request.url).pathname === "/direct") return new Response("from the second");
    const url = new URL(request.url);
    url.searchParams.set("seen", request.headers.get("x-seen-by") ?? "nobody");
    const changed = new Request(url, request);
    changed.headers.append("x-seen-by", "second");
    const response = await fetch(changed);
    const answer = new Response(response.body, response);
    answer.headers.append("x-answered-by", "second");
    return answer;
  },
};
