import { afterEach, vi } from "vitest";
import { startImagePlatform, type ImagePlatform } from "./platform.ts";

/** Starts platforms that end with the test that has started them, as its spies do. */
export function platformsPerTest(): typeof startImagePlatform {
  const platforms: ImagePlatform[] = [];
  afterEach(async () => {
    vi.restoreAllMocks();
    await Promise.all(platforms.splice(0).map((platform) => platform.close(1000)));
  });
  return async (settings) => {
    const platform = await startImagePlatform(settings);
    platforms.push(platform);
    return platform;
  };
}
