import { z } from "zod";
import type { Page } from "./envelope.ts";

/**
 * Schema of `page` and `per_page`. A page past the end is empty, which is where the official clients stop.
 */
export function pageQuery(perPage: { default: number; min?: number; max: number }) {
  return z.object({
    page: z.coerce.number().int().min(1).max(1_000_000_000).default(1),
    per_page: z.coerce
      .number()
      .int()
      .min(perPage.min ?? 1)
      .max(perPage.max)
      .default(perPage.default),
  });
}

/** Cuts a page out of a list in memory. */
export function paginate<T>(items: readonly T[], query: { page: number; per_page: number }): Page<T> {
  const start = (query.page - 1) * query.per_page;
  return {
    items: items.slice(start, start + query.per_page),
    page: query.page,
    perPage: query.per_page,
    totalCount: items.length,
  };
}

/** "true" and "false" in a query string. */
export const queryFlag = z.enum(["true", "false"]).transform((text) => text === "true");
