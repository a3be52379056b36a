/** Answers that match the public API but not the client's types, by operation, with the reason. */
export const exceptions: Readonly<Record<string, string>> = {
  zone_setting_transformations_allowed_origins_get: "its id matches the types of zones.settings",
  zone_setting_transformations_allowed_origins_edit: "its id matches the types of zones.settings",
  bot_management_get: "its id belongs to this platform",
  bot_management_edit: "its id belongs to this platform",
  user_token_create: "a policy may name whole zones and zones of an account; the types allow one form",
  account_token_create: "a policy may name whole zones and zones of an account; the types allow one form",
  ruleset_list: "the types lack the phase of snippets",
  image_variant_list: "the types allow variants of one name only",
  kv_bulk_get: "values without metadata are strings; the types name objects",
  script_deployment_create: "annotations of any name; the types name two",
  script_tail_list: "a list; the types name one tail",
  workflow_instance_get: "an output may be any JSON; the types name strings and numbers",
};
