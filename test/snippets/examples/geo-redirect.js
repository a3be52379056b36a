// Sends visitors to the pages of their country.
const sites = { DE: "/de", AT: "/de", US: "/us" };

export default {
  async fetch(request) {
    const url = new URL(request.url);
    const site = sites[request.cf.country];
    if (site === undefined || url.pathname.startsWith(`${site}/`)) return fetch(request);
    url.pathname = site + url.pathname;
    return Response.redirect(url.href, 302);
  },
};
