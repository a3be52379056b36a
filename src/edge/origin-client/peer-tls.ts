import { DEFAULT_CIPHERS } from "node:tls";

/**
 * TLS options of every connection to a server that a customer chose. They offer no DHE, where the server chooses the
 * prime: one of 10,000 bits keeps the main thread busy for seconds.
 */
export const peerTls = { ciphers: `${DEFAULT_CIPHERS}:!kDHE` } as const;
