import { randomText } from "../../platform/util/ids.ts";

export const newRay = (colo: string): string => `${randomText(8, "hex")}-${colo}`;
