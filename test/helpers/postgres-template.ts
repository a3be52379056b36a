import { rmSync } from "node:fs";
import { clusterFolder } from "./postgres-cluster.ts";

/** For a run of tests: the folder of the cluster that all PostgreSQL servers of the run are copies of. */
export default function setup(): () => void {
  const folder = clusterFolder();
  process.env.TEST_POSTGRES_CLUSTERS = folder;
  return () => rmSync(folder, { recursive: true });
}
