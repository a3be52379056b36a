import type { Domains } from "./domains.ts";
import type { LiveScript } from "./runtime-script.ts";
import type { Routes } from "./routes.ts";
import type { Scripts } from "./scripts.ts";
import type { Subdomains } from "./subdomains.ts";

export interface RoutedRequest {
  scheme: "http" | "https";
  /** In lower case, without a port. */
  host: string;
  /** With its query. */
  path: string;
  /** The zone that serves the host, if any. */
  zone: { id: string; accountId: string } | undefined;
}

/** Finds the script that takes a request, from memory: by a zone's route, a domain of its own, or its host name. */
export class ScriptRouter {
  readonly #scripts: Scripts;
  readonly #routes: Routes;
  readonly #domains: Domains;
  readonly #subdomains: Subdomains;
  readonly #suffix: string;
  #port: number | undefined;

  /** `workersDomain` is what the host names of scripts end in. */
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

  /** Undefined where no script takes the request, or the one that a route names is not deployed. */
  find({ scheme, host, path, zone }: RoutedRequest): LiveScript | undefined {
    if (zone !== undefined) {
      const route = this.#routes.match(zone.id, scheme, host, path);
      if (route !== undefined)
        return route.script === null ? undefined : this.#live(zone.accountId, route.script);
    }
    const domain = this.#domains.ofHost(host);
    if (domain !== undefined) return this.#live(domain.accountId, domain.service);
    return host.endsWith(this.#suffix) ? this.#ofOwnHost(host.slice(0, -this.#suffix.length)) : undefined;
  }

  /** The URL under which a script is reached without a zone. Known once the edge listens. */
  urlOf(name: string, subdomain: string): string | undefined {
    if (this.#port === undefined) return undefined;
    const port = this.#port === 80 ? "" : `:${this.#port}`;
    return `http://${name}.${subdomain}${this.#suffix}${port}`;
  }

  /** Tells where the edge listens. */
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
