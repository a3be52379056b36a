import { randomText } from "../../platform/util/ids.ts";

/** A new id of a request, for its response, its origin and the log. `colo` is the code of the node's location. */
export const newRay = (colo: string): string => `${randomText(8, "hex")}-${colo}`;

/** Whether a text has the form of a ray. */
export const isRay = (text: string): boolean => /^[\da-f]{16}-[A-Za-z]{3}$/.test(text);
