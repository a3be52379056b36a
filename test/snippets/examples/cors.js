// Lets one other site call this one.
const allowed = new Set(["https://app.example"]);
const methods = "GET, POST, OPTIONS";

export default {
  async fetch(request) {
    const origin = request.headers.get("origin") ?? "";
    const headers = allowed.has(origin)
      ? { "access-control-allow-origin": origin, "access-control-allow-methods": methods, vary: "origin" }
      : {};
    const isPreflight = request.method === "OPTIONS" && request.headers.has("access-control-request-method");
    if (isPreflight) return new Response(null, { status: allowed.has(origin) ? 204 : 403, headers });
    const response = await fetch(request);
    const answer = new Response(response.body, response);
    for (const [name, value] of Object.entries(headers)) answer.headers.set(name, value);
    return answer;
  },
};
