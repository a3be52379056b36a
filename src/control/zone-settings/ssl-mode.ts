/** Values of the zone setting `ssl`. */
export const sslModes = ["off", "flexible", "full", "strict"] as const;
/**
 * How the edge connects to origins: off and flexible without TLS, full with any certificate, strict with a
 * valid one.
 */
export type SslMode = (typeof sslModes)[number];
