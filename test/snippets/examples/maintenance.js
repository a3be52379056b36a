// A page for everybody, except those who know the word.
const page = "<!doctype html><title>Maintenance</title><h1>Back soon</h1>";

export default {
  async fetch(request) {
    if (request.headers.get("x-bypass") === "open sesame") return fetch(request);
    return new Response(page, {
      status: 503,
      headers: { "content-type": "text/html; charset=utf-8", "retry-after": "3600" },
    });
  },
};
