import { afterAll, beforeAll } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { Project } from "./harness.ts";

/** A platform, and a project folder that deploys to it, for the tests of a file. Set when the tests run. */
export interface UsedProject {
  server: TestServer;
  project: Project;
}

export function useProject(): UsedProject {
  const used = {} as UsedProject;
  beforeAll(async () => {
    used.server = await startTestServer();
    used.project = new Project(used.server);
  });
  afterAll(async () => {
    used.project.remove();
    await used.server.close(1000);
  });
  return used;
}
