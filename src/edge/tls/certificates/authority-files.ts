import { join } from "node:path";

/** The authority's files in the data folder. */
export const authorityFiles = (dataDir: string): { certificate: string; key: string } => ({
  certificate: join(dataDir, "tls", "authority.pem"),
  key: join(dataDir, "tls", "authority.key"),
});
