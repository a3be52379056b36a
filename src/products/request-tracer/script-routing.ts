import type { Domains } from "../../workers/scripts/routing/domains.ts";
import { parsePattern, RouteTable, type RoutePattern } from "../../workers/scripts/routing/route-table.ts";
import type { Routes, ScriptRoute } from "../../workers/scripts/routing/routes.ts";
import type { ScriptRouter } from "../../workers/scripts/routing/router.ts";
import type { TracedStep } from "./step.ts";
import type { TracedRequest } from "./described-request.ts";

/** Finds the route or custom domain that selects a script for a request. */
export class ScriptRouting {
  readonly #router: Pick<ScriptRouter, "find">;
  readonly #routes: Pick<Routes, "match" | "list">;
  readonly #domains: Pick<Domains, "servedAt">;

  constructor(
    router: Pick<ScriptRouter, "find">,
    routes: Pick<Routes, "match" | "list">,
    domains: Pick<Domains, "servedAt">,
  ) {
    this.#router = router;
    this.#routes = routes;
    this.#domains = domains;
  }

  async step({ zone, host, description }: TracedRequest): Promise<TracedStep> {
    const scheme = description.tls ? "https" : "http";
    const path = description.url;
    const accountId = zone.configuration?.accountId ?? "";
    const chosen = this.#routes.match(zone.id, scheme, host, path);
    const live = this.#router.find({ scheme, host, path, zone: { id: zone.id, accountId } });
    const steps = (await this.#routes.list(zone.id)).map((route): TracedStep => {
      const parsed = parsePattern(route.pattern) as RoutePattern;
      const isMatch = new RouteTable([{ pattern: parsed, route }]).match(scheme, host, path) !== undefined;
      return routeStep(route, isMatch, route.id === chosen?.id, live !== undefined);
    });
    const domain = this.#domains.servedAt(host);
    if (domain !== undefined)
      steps.push({
        step_name: domain.id,
        type: "domain",
        name: domain.hostname,
        matched: true,
        outcome: chosen === undefined && live !== undefined ? "acted" : "no_effect",
        action: "execute",
        action_parameters: { script: domain.service },
      });
    return {
      step_name: "worker_routes",
      type: "routes",
      matched: steps.some(({ matched }) => matched),
      outcome: live === undefined ? "no_match" : "acted",
      trace: steps,
    };
  }
}

function routeStep(route: ScriptRoute, isMatch: boolean, isChosen: boolean, isLive: boolean): TracedStep {
  const isExcluding = route.script === null;
  return {
    step_name: route.id,
    type: "route",
    name: route.pattern,
    matched: isMatch,
    outcome: isMatch ? (isChosen && (isLive || isExcluding) ? "acted" : "no_effect") : "no_match",
    ...(isMatch && !isChosen ? { description: "A more specific route matches" } : {}),
    ...(isChosen && !isLive && !isExcluding ? { description: "The script is not deployed" } : {}),
    action: isExcluding ? "exclude" : "execute",
    ...(route.script === null ? {} : { action_parameters: { script: route.script } }),
  };
}
