import { parentPort } from "node:worker_threads";
import type { SourceMapRequest, SourceMapAnswer } from "./messages.ts";
import { originalPosition, readSourceMap, segmentsMax, type ReadMap } from "./source-map.ts";

/* Parses source maps outside the main thread, because they may be large and are untrusted. */

/** Uploaded maps, by code and module. */
const uploaded = new Map<string, Map<string, Uint8Array>>();
/** Parsed maps. */
const read = new Map<string, ReadMap | undefined>();
let segments = 0;

parentPort!.on("message", (ask: SourceMapRequest) => {
  if (ask.type === "keep")
    uploaded.set(ask.codeId, new Map(ask.maps.map(({ module, content }) => [module, content])));
  else if (ask.type === "drop") {
    uploaded.delete(ask.codeId);
    forgetRead();
  } else {
    const positions = ask.positions.map((position) => {
      const map = mapOf(ask.codeId, position.file);
      return map && originalPosition(map, position);
    });
    parentPort!.postMessage({ id: ask.id, positions } satisfies SourceMapAnswer, []);
  }
});

function mapOf(codeId: string, module: string): ReadMap | undefined {
  const key = `${codeId} ${module}`;
  if (read.has(key)) return read.get(key);
  const content = uploaded.get(codeId)?.get(module);
  if (content === undefined) return undefined;
  const map = readSourceMap(Buffer.from(content).toString());
  if (segments + (map?.segments ?? 0) > segmentsMax) forgetRead();
  segments += map?.segments ?? 0;
  read.set(key, map);
  return map;
}

function forgetRead(): void {
  read.clear();
  segments = 0;
}
