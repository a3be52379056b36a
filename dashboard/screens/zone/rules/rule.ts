/** A rule of a ruleset. New ones have no id yet. */
export interface Rule {
  id: string;
  /** Increases with each change; none for a new one. */
  version?: string;
  ref?: string;
  action: string;
  action_parameters: {
    host_header?: string;
    origin?: { host?: string; port?: number };
    sni?: { value: string };
  };
  expression: string;
  description: string;
  enabled: boolean;
}

export interface Ruleset {
  id: string;
  version: string;
  last_updated: string;
  rules?: Rule[];
}

export const rulesetsOf = (zoneId: string): string => `/zones/${zoneId}/rulesets`;

export const entrypointOf = (zoneId: string, phase: string): string =>
  `${rulesetsOf(zoneId)}/phases/${phase}/entrypoint`;

/** A rule as the API accepts it. */
export const bodyOf = ({
  id,
  ref,
  action,
  action_parameters,
  expression,
  description,
  enabled,
}: Rule): object => ({
  ...(id !== "" && { id }),
  ...(ref !== undefined && { ref }),
  action,
  action_parameters,
  expression,
  description,
  enabled,
});

/** The effect of an origin rule, in words. */
export function describe({ action_parameters: { host_header, origin, sni } }: Rule): string {
  const parts = [
    origin?.host === undefined ? "" : `to ${origin.host}`,
    origin?.port === undefined ? "" : `port ${origin.port}`,
    host_header === undefined ? "" : `Host: ${host_header}`,
    sni === undefined ? "" : `SNI ${sni.value}`,
  ];
  return parts.filter((part) => part !== "").join(", ") || "nothing";
}
