import type { FieldGroup } from "./field-definition.ts";

const certificateTexts = [
  ...["cert_issuer_dn", "cert_subject_dn"].flatMap((name) => [name, `${name}_rfc2253`, `${name}_legacy`]),
  "cert_serial",
  "cert_issuer_serial",
  "cert_fingerprint_sha256",
  "cert_fingerprint_sha1",
  "cert_not_before",
  "cert_not_after",
  "cert_ski",
  "cert_issuer_ski",
  "cert_rfc9440",
  "cert_chain_rfc9440",
];

/** The connection: the edge's side, TLS, and bot detection. */
export const connectionFields: readonly FieldGroup[] = [
  ["Ip", "cf.edge.server_ip"],
  ["Int", "cf.edge.server_port cf.edge.l4.delivery_rate cf.tls_client_hello_length"],
  ["Bool", "cf.edge.client_tcp"],
  [
    "Bytes",
    "cf.ray_id cf.random_seed cf.hostname.metadata cf.worker.upstream_zone cf.tls_version cf.tls_cipher",
  ],
  ["Bytes", "cf.tls_ciphers_sha1 cf.tls_client_extensions_sha1 cf.tls_client_extensions_sha1_le"],
  ["Bytes", "cf.tls_client_random"],
  [
    "Bool",
    "cf.tls_client_auth.cert_presented cf.tls_client_auth.cert_verified cf.tls_client_auth.cert_revoked",
  ],
  ["Bool", "cf.tls_client_auth.cert_rfc9440_too_large cf.tls_client_auth.cert_chain_rfc9440_too_large"],
  ["Bytes", certificateTexts.map((name) => `cf.tls_client_auth.${name}`).join(" ")],
  ["Int", "cf.timings.client_tcp_rtt_msec cf.timings.client_quic_rtt_msec cf.timings.edge_msec"],
  ["Int", "cf.timings.origin_ttfb_msec cf.timings.worker_msec"],
  [
    "Bool",
    "cf.bot_management.verified_bot cf.bot_management.static_resource cf.bot_management.corporate_proxy",
  ],
  ["Bool", "cf.bot_management.js_detection.passed cf.bot_management.signed_agent cf.client.bot"],
  ["Int", "cf.bot_management.score", 99],
  ["Bytes", "cf.bot_management.ja3_hash cf.bot_management.ja4 cf.verified_bot_category"],
  ["Array(Int)", "cf.bot_management.detection_ids"],
];

/**
 * Results of security services that this platform does not have. They have types and neutral values, so that
 * expressions with them stay valid.
 */
export const securityFields: readonly FieldGroup[] = [
  ["Int", "cf.threat_score cf.llm.prompt.token_count"],
  ["Int", "cf.waf.score cf.waf.score.sqli cf.waf.score.xss cf.waf.score.rce", 100],
  ["Int", "cf.llm.prompt.injection_score", 99],
  ["Bytes", "cf.waf.score.class"],
  [
    "Bool",
    "cf.waf.auth_detected cf.waf.credential_check.password_leaked cf.waf.credential_check.username_leaked",
  ],
  ["Bool", "cf.waf.credential_check.username_and_password_leaked"],
  ["Bool", "cf.waf.credential_check.username_password_similar"],
  [
    "Bool",
    "cf.waf.content_scan.has_obj cf.waf.content_scan.has_malicious_obj cf.waf.content_scan.has_failed",
  ],
  ["Int", "cf.waf.content_scan.num_obj cf.waf.content_scan.num_malicious_obj"],
  ["Array(Int)", "cf.waf.content_scan.obj_sizes"],
  ["Array(Bytes)", "cf.waf.content_scan.obj_types cf.waf.content_scan.obj_results"],
  ["Bool", "cf.api_gateway.auth_id_present cf.api_gateway.request_violates_schema"],
  ["Bool", "cf.api_gateway.fallthrough_detected"],
  ["Bool", "cf.schema_validation.learned.violated cf.schema_validation.uploaded.violated"],
  ["Bool", "cf.llm.prompt.detected cf.llm.prompt.pii_detected cf.llm.prompt.unsafe_topic_detected"],
  ["Array(Bytes)", "cf.llm.prompt.pii_categories cf.llm.prompt.unsafe_topic_categories"],
  ["Map(Int)", "cf.llm.prompt.custom_topic_categories"],
];
