import type { Ruleset } from "../../control/rulesets/ruleset.ts";
import type { Rulesets } from "../../control/rulesets/rulesets.ts";
import type { ZoneSettings } from "../../control/zone-settings/zone-settings.ts";
import type { HostEntry } from "../../edge/configuration/snapshot.ts";
import { VisitorError } from "../../edge/http/errors.ts";
import type { Edge } from "../../edge/request/listener.ts";
import { servedEntry } from "../../edge/request/served-entry.ts";
import { redirectScheme } from "../../edge/tls/scheme-handler.ts";
import { requestFields } from "../../rules/language.ts";
import type { ScriptRouting } from "./script-routing.ts";
import type { TracedRequest } from "./described-request.ts";
import { partsRoom, rulesetStep } from "./rule-steps.ts";
import { unreached, type StepOutcome, type TracedStep } from "./step.ts";

/** The parts of a zone's configuration that a caller may read. */
export type Readable = Record<
  "records" | "settings" | "originRules" | "snippets" | "routes" | "origin",
  boolean
>;

export interface TracedConfiguration {
  rulesets: Pick<Rulesets, "list">;
  zoneSettings: ZoneSettings;
  routing: ScriptRouting;
  edge: Pick<Edge, "originOf">;
}

/**
 * The steps of a request through the configuration of its zone, in the order of the public phases. Parts that the caller
 * may not read are named, and their content is left out.
 */
export async function traceRequest(
  request: TracedRequest,
  readable: Readable,
  from: TracedConfiguration,
): Promise<TracedStep[]> {
  const { zone, description } = request;
  const { entry, step: record } = recordStep(request, readable.records);
  const settings = settingsStep(request, from.zoneSettings);
  const isRedirected = settings.trace!.some(({ action }) => action === "redirect");
  const fields = requestFields(description);
  const rulesets = await from.rulesets.list(zone.id);
  const room = partsRoom();
  const rulesOf = async (phase: Ruleset["phase"]): Promise<TracedStep> => {
    const ruleset = rulesets.find((each) => each.phase === phase);
    return ruleset === undefined ? withoutRules(phase) : rulesetStep(ruleset, fields, room);
  };
  const originRules = await rulesOf("http_request_origin");
  const snippets = await rulesOf("http_request_snippets");
  const routes = await from.routing.step(request);
  const isRun = snippets.outcome === "acted" || routes.outcome === "acted";
  const shown = (step: TracedStep, isReadable: boolean): TracedStep => (isReadable ? step : hidden(step));
  const later = [
    shown(originRules, readable.originRules),
    shown(snippets, readable.snippets),
    shown(routes, readable.routes),
  ];
  if (entry === undefined)
    return [record, ...[shown(settings, readable.settings), ...later].map(unreached), noOrigin];
  const first = [record, shown(settings, readable.settings)];
  if (isRedirected) return [...first, ...later.map(unreached), noOrigin];
  const origin = await originStep(request, entry, isRun ? "depends" : "acted", from);
  return [...first, ...later, shown(origin, readable.origin)];
}

const noOrigin: TracedStep = { step_name: "origin", type: "origin", matched: false, outcome: "not_reached" };

const withoutRules = (phase: Ruleset["phase"]): TracedStep => ({
  step_name: phase,
  type: "ruleset",
  kind: "zone",
  matched: false,
  outcome: "no_match",
  trace: [],
});

const hidden = ({ step_name, type }: TracedStep): TracedStep => ({
  step_name,
  type,
  matched: false,
  outcome: "hidden",
  description: "The token may not read this part of the zone",
});

/** The record of the host, which decides whether the edge serves it. */
function recordStep(
  { zone, host }: TracedRequest,
  isReadable: boolean,
): { entry: HostEntry | undefined; step: TracedStep } {
  const step = { step_name: "dns_record", type: "record", name: host } as const;
  try {
    const entry = servedEntry(zone, host);
    if (entry !== undefined) {
      const records = entry.targets.map(({ type, content }) => `${type} ${content}`);
      const shown = isReadable ? { action_parameters: { records } } : {};
      return { entry, step: { ...step, ...shown, matched: true, outcome: "acted" } };
    }
    return {
      entry,
      step: { ...step, matched: false, outcome: "no_match", description: "No record has this name" },
    };
  } catch (error) {
    if (!(error instanceof VisitorError)) throw error;
    return {
      entry: undefined,
      step: { ...step, matched: false, outcome: "no_match", description: shownError(error) },
    };
  }
}

function settingsStep({ zone, description }: TracedRequest, settings: ZoneSettings): TracedStep {
  const { tls, url } = description;
  const scheme = redirectScheme(settings, zone.id, tls, url);
  const setting = (name: string, value: string, redirectsTo: "http" | "https"): TracedStep => ({
    step_name: name,
    type: "setting",
    matched: scheme === redirectsTo,
    outcome: scheme === redirectsTo ? "acted" : "no_effect",
    name: value,
    ...(scheme === redirectsTo
      ? { action: "redirect", action_parameters: { scheme, status_code: 301 } }
      : {}),
  });
  const steps = [
    setting("ssl", settings.value(zone.id, "ssl"), "http"),
    setting("always_use_https", settings.value(zone.id, "always_use_https"), "https"),
  ];
  return {
    step_name: "zone_settings",
    type: "settings",
    matched: scheme !== undefined,
    outcome: scheme === undefined ? "no_effect" : "acted",
    trace: steps,
  };
}

async function originStep(
  { zone, host, authority, description }: TracedRequest,
  entry: HostEntry,
  outcome: StepOutcome,
  { edge }: TracedConfiguration,
): Promise<TracedStep> {
  const step = { step_name: "origin", type: "origin", matched: true, outcome } as const;
  try {
    const asked = { host, authority, isTls: description.tls, describe: () => description };
    const { addresses, port, tls, hostHeader } = await edge.originOf(zone, entry, asked);
    return {
      ...step,
      action: "proxy",
      action_parameters: {
        addresses,
        port,
        host_header: hostHeader,
        scheme: tls === undefined ? "http" : "https",
        ...(tls === undefined ? {} : { sni: tls.servername }),
        smart_routing: zone.configuration?.smartRouting ?? "off",
      },
    };
  } catch (error) {
    if (!(error instanceof VisitorError)) throw error;
    return { ...step, matched: false, outcome: "no_effect", description: shownError(error) };
  }
}

const shownError = ({ code, title, message }: VisitorError): string => `Error ${code}: ${title}. ${message}`;
