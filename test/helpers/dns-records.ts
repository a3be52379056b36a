import type Cloudflare from "cloudflare";
import { afterAll, beforeAll } from "vitest";
import { startTestServer, type ApiResponse, type TestServer } from "./server.ts";

/** The server of a test file about DNS records, and its official client. `useServer` sets both. */
export let server: TestServer;
export let client: Cloudflare;

/** Starts the server before the tests of the calling file, and closes it after them. */
export function useServer(): void {
  beforeAll(async () => {
    server = await startTestServer();
    client = server.client;
  });
  afterAll(() => server.close(1000));
}

let zonesMade = 0;
export const createZone = (): Promise<string> => server.newZone(`zone-${++zonesMade}.example`);
export const nameOf = (zone_id: string): string => server.services.zones.find(zone_id)!.name;
export const messages = (answer: ApiResponse): string[] =>
  answer.body.messages.map((each) => (each as { message: string }).message);
