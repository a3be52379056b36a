import { afterEach, vi } from "vitest";
import { startImagePlatform, type ImagePlatform } from "./platform.ts";

/** Starts platforms that are closed at the end of their test. */
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
