/** Values of the zone setting `ssl`. */
export const sslModes = ["off", "flexible", "full", "strict"] as const;
export type SslMode = (typeof sslModes)[number];
