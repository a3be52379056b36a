// Faults that no code catches.
const api = "http://api.test";

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/throw") throw new Error("out of order");
    if (pathname === "/nothing") return undefined;
    if (pathname === "/origin-twice") {
      await fetch(request);
      return fetch(request);
    }
    if (pathname === "/fetches") for (;;) await fetch(`${api}/part?name=x`);
    if (pathname === "/spin") for (;;);
    if (pathname === "/objects") for (const hoard = []; ;) hoard.push({ next: [hoard.length, "some text"] });
    if (pathname === "/buffers") for (const hoard = []; ;) hoard.push(new Uint8Array(4_000_000).fill(1));
    return fetch(request);
  },
};
