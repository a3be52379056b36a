export const htmlHandlings = [
  "auto-trailing-slash",
  "force-trailing-slash",
  "drop-trailing-slash",
  "none",
] as const;
export type HtmlHandling = (typeof htmlHandlings)[number];

/** The result for a path: a file, or a redirect to another path. */
export type ResolvedPage = { file: string } | { redirect: string };
type Step = { serve: string } | { show: string; at: string };

/**
 * Resolves a path. `has` returns the hash of a file, or undefined. Redirects only if the target is not a file
 * itself and resolves to the intended file.
 */
export function resolveHtml(
  handling: HtmlHandling,
  path: string,
  has: (path: string) => string | undefined,
): ResolvedPage | undefined {
  for (const step of steps[handling](path)) {
    if ("serve" in step) {
      if (has(step.serve) !== undefined) return { file: step.serve };
    } else if (has(step.show) !== undefined && has(step.at) === undefined) {
      const there = steps[handling](step.at).find((each) => "serve" in each && has(each.serve) !== undefined);
      if (there !== undefined && "serve" in there && has(there.serve) === has(step.show))
        return { redirect: step.at };
    }
  }
  return undefined;
}

const serve = (file: string): Step => ({ serve: file });
const redirect = (show: string, at: string): Step => ({ show, at });

/** The candidates for each handling, in order. `name.html` and `name/index.html` are two files for one page. */
const steps: Record<HtmlHandling, (path: string) => Step[]> = {
  none: (path) => [serve(path)],

  "auto-trailing-slash"(path) {
    const tried: Step[] = [];
    if (path.endsWith("/index")) {
      const folder = path.slice(0, -"index".length);
      const page = path.slice(0, -"/index".length);
      tried.push(serve(path), redirect(`${path}.html`, folder), redirect(`${page}.html`, page));
    } else if (path.endsWith("/index.html")) {
      const page = path.slice(0, -"/index.html".length);
      tried.push(redirect(path, `${page}/`), redirect(`${page}.html`, page));
    } else if (path.endsWith("/")) {
      const page = path.slice(0, -1);
      tried.push(serve(`${path}index.html`), redirect(`${page}.html`, page));
    } else if (path.endsWith(".html")) {
      const page = path.slice(0, -".html".length);
      tried.push(redirect(path, page), redirect(`${page}/index.html`, `${page}/`));
    }
    return [...tried, serve(path), serve(`${path}.html`), redirect(`${path}/index.html`, `${path}/`)];
  },

  "force-trailing-slash"(path) {
    const tried: Step[] = [];
    if (path.endsWith("/index")) {
      const folder = path.slice(0, -"index".length);
      tried.push(
        serve(path),
        redirect(`${path}.html`, folder),
        redirect(`${folder.slice(0, -1)}.html`, folder),
      );
    } else if (path.endsWith("/index.html")) {
      const page = path.slice(0, -"/index.html".length);
      tried.push(redirect(path, `${page}/`), redirect(`${page}.html`, `${page}/`));
    } else if (path.endsWith("/")) {
      tried.push(serve(`${path}index.html`), serve(`${path.slice(0, -1)}.html`));
    } else if (path.endsWith(".html")) {
      const page = path.slice(0, -".html".length);
      tried.push(redirect(path, `${page}/`), serve(path), redirect(`${page}/index.html`, `${page}/`));
    }
    return [
      ...tried,
      serve(path),
      redirect(`${path}.html`, `${path}/`),
      redirect(`${path}/index.html`, `${path}/`),
    ];
  },

  "drop-trailing-slash"(path) {
    const tried: Step[] = [];
    if (path === "/") tried.push(serve("/index.html"));
    else if (path === "/index") tried.push(serve(path), redirect("/index.html", "/"));
    else if (path === "/index.html") tried.push(redirect("/index.html", "/"));
    else if (path.endsWith("/index")) {
      const page = path.slice(0, -"/index".length);
      tried.push(serve(path), redirect(`${page}.html`, page), redirect(`${path}.html`, page));
    } else if (path.endsWith("/index.html")) {
      const page = path.slice(0, -"/index.html".length);
      tried.push(redirect(path, page), serve(path), redirect(`${page}.html`, page));
    } else if (path.endsWith("/")) {
      const page = path.slice(0, -1);
      tried.push(redirect(`${page}.html`, page), redirect(`${page}/index.html`, page));
    } else if (path.endsWith(".html")) {
      const page = path.slice(0, -".html".length);
      tried.push(redirect(path, page), redirect(`${page}/index.html`, page));
    }
    return [...tried, serve(path), serve(`${path}.html`), serve(`${path}/index.html`)];
  },
};
