/** Receives every fetch of a customer's script. The dispatcher sets `customer` and `plan`. */
const blockedHosts = new Set(["blocked.example"]);

export default {
  async fetch(request, env) {
    const { hostname } = new URL(request.url);
    if (blockedHosts.has(hostname)) return new Response(`${hostname} is blocked.\n`, { status: 403 });
    const outgoing = new Request(request);
    outgoing.headers.set("x-shop", env.customer);
    outgoing.headers.set("x-plan", env.plan);
    return fetch(outgoing);
  },
};
