import type { Domains } from "./domains.ts";
import type { LiveScript } from "../runtime-script.ts";
import type { Routes } from "./routes.ts";
import type { Scripts } from "../scripts.ts";
import type { Subdomains } from "./subdomains.ts";

export interface RoutedRequest {
  scheme: "http" | "https";
  /** In lower case, without a port. */
  host: string;
  /** Path and query. */
  path: string;
  /** The zone that serves the host, if any. */
  zone: { id: string; accountId: string } | undefined;
}

/** Finds the script for a request in memory: by a zone's route, a custom domain, or the script's own host name. */
export class ScriptRouter {
  readonly #scripts: Scripts;
  readonly #routes: Routes;
  readonly #domains: Domains;
  readonly #subdomains: Subdomains;
  readonly #suffix: string;
  #port: number | undefined;

  /** `workersDomain` is the suffix of scripts' host names. */
  constructor(
    scripts: Scripts,
    routes: Routes,
    domains: Domains,
    subdomains: Subdomains,
    workersDomain: string,
  ) {
    this.#scripts = scripts;
    this.#routes = routes;
    this.#domains = domains;
    this.#subdomains = subdomains;
    this.#suffix = `.${workersDomain.toLowerCase()}`;
  }

  /** Undefined if no script handles the request, or if the route's script is not deployed. */
  find({ scheme, host, path, zone }: RoutedRequest): LiveScript | undefined {
    if (zone !== undefined) {
      const route = this.#routes.match(zone.id, scheme, host, path);
      if (route !== undefined)
        return route.script === null ? undefined : this.#live(zone.accountId, route.script);
    }
    const domain = this.#domains.servedAt(host);
    if (domain !== undefined) return this.#live(domain.accountId, domain.service);
    return host.endsWith(this.#suffix) ? this.#ofOwnHost(host.slice(0, -this.#suffix.length)) : undefined;
  }

  /** The URL of a script without a zone. Needs the port that `listening` sets. */
  urlOf(name: string, subdomain: string): string | undefined {
    if (this.#port === undefined) return undefined;
    const port = this.#port === 80 ? "" : `:${this.#port}`;
    return `http://${name}.${subdomain}${this.#suffix}${port}`;
  }

  /** Sets the port of the edge. */
  listening(port: number): void {
    this.#port = port;
  }

  #ofOwnHost(labels: string): LiveScript | undefined {
    const dot = labels.indexOf(".");
    const accountId = this.#subdomains.accountOf(labels.slice(dot + 1));
    if (dot < 0 || accountId === undefined) return undefined;
    const name = labels.slice(0, dot);
    return this.#scripts.find({ accountId }, name)?.subdomainEnabled === true
      ? this.#live(accountId, name)
      : undefined;
  }

  #live(accountId: string, name: string): LiveScript | undefined {
    return this.#scripts.live({ accountId }, name);
  }
}
