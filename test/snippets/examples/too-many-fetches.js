// Goes on until it may not, and tells how far it came. A redirect counts as well.
const api = "http://api.test";

export default {
  async fetch(request) {
    const path = new URL(request.url).searchParams.get("fetch");
    const statuses = [];
    try {
      for (let i = 0; i < 10; i++) statuses.push((await fetch(api + path)).status);
    } catch (error) {
      return Response.json({ statuses, error: error instanceof Error });
    }
    return Response.json({ statuses });
  },
};
