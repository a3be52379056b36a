// Half of the visitors see another page, and each of them always the same one.
const cookieName = "variant";

export default {
  async fetch(request) {
    const known = /(?:^|;\s*)variant=([ab])(?:;|$)/.exec(request.headers.get("cookie") ?? "")?.[1];
    const variant = known ?? (crypto.getRandomValues(new Uint8Array(1))[0] < 128 ? "a" : "b");
    const url = new URL(request.url);
    url.pathname = `/${variant}${url.pathname}`;
    const response = await fetch(new Request(url, request));
    if (known !== undefined) return response;
    const answer = new Response(response.body, response);
    answer.headers.append("set-cookie", `${cookieName}=${variant}; Path=/; Max-Age=86400`);
    return answer;
  },
};
