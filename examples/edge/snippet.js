/** Passes the request on to the origin, and forbids other sites to frame the answer. */
export default {
  async fetch(request) {
    const response = await fetch(request);
    const changed = new Response(response.body, response);
    changed.headers.set("x-frame-options", "DENY");
    return changed;
  },
};
