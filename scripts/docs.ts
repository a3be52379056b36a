import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, extname, join } from "node:path";
import { buildSite } from "./site/site.ts";

/*
 * `npm run docs` builds the pages into site/. `npm run docs:dev` serves them on this machine, and renders the pages again
 * for every page that is opened.
 */
const outdir = "site";
const types: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".webp": "image/webp",
};

function write(): void {
  rmSync(outdir, { recursive: true, force: true });
  const site = buildSite();
  for (const [address, content] of site) {
    const path = join(outdir, address);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  process.stdout.write(`wrote ${site.size} files to ${outdir}/\n`);
}

function serve(port: number): void {
  let site = buildSite();
  const server = createServer(({ url = "/" }, response) => {
    const path = decodeURIComponent(new URL(url, "http://site").pathname).slice(1);
    const address = path === "" || path.endsWith("/") ? `${path}index.html` : path;
    if (address.endsWith(".html")) site = buildSite();
    const content = site.get(address);
    response.writeHead(content === undefined ? 404 : 200, {
      "content-type": types[extname(address)] ?? "text/plain",
    });
    response.end(content ?? "not found");
  });
  server.listen(port, "127.0.0.1", () => {
    process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}/\n`);
  });
}

if (process.argv.includes("--serve")) serve(Number(process.env["PORT"] ?? 5173));
else write();
