import type { Page } from "playwright-core";
import type { makeData } from "./data.ts";

/** A screen of the console, for the tests of all screens and for the pictures. */
export interface Shown {
  name: string;
  path: string;
  /** Does something before the picture: opens a dialog, types. */
  prepare?: (page: Page) => Promise<void>;
}

/** Every screen, with the data of data.ts. */
export function screensOf(account: string, { zone }: Awaited<ReturnType<typeof makeData>>): Shown[] {
  const a = `/${account}`;
  const z = `${a}/zones/${zone.name}`;
  return [
    { name: "sign-in", path: "/" },
    { name: "overview", path: a },
    { name: "zones", path: `${a}/zones` },
    {
      name: "zone-add",
      path: `${a}/zones`,
      prepare: async (page) => page.getByRole("button", { name: "Add a zone" }).click(),
    },
    { name: "palette", path: `${a}/zones`, prepare: async (page) => page.keyboard.press("Control+k") },
    { name: "zone-overview", path: z },
  ];
}
