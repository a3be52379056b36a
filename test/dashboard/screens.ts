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
export function screensOf(
  account: string,
  { zone, queueId, namespaceId, objectsId, visit }: Awaited<ReturnType<typeof makeData>>,
): Shown[] {
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
    { name: "dns", path: `${z}/dns` },
    {
      name: "dns-record",
      path: `${z}/dns`,
      prepare: async (page) => page.getByText("mail", { exact: true }).first().click(),
    },
    { name: "dns-import", path: `${z}/dns`, prepare: async (page) => page.keyboard.press("i") },
    {
      name: "dns-ask",
      path: `${z}/dns`,
      prepare: async (page) => {
        await page.keyboard.press("q");
        await page.getByRole("button", { name: "Ask", exact: true }).click();
        await page.getByRole("region", { name: "Answer" }).waitFor();
      },
    },
    { name: "dns-settings", path: `${z}/settings` },
    { name: "transfers", path: `${z}/transfers` },
    { name: "rules", path: `${z}/rules` },
    { name: "rule", path: `${z}/rules?rule=new` },
    { name: "snippets", path: `${z}/snippets` },
    {
      name: "trace",
      path: `${z}/trace?url=${encodeURIComponent(`https://${zone.name}/api/orders?a=1`)}&method=POST`,
    },
    { name: "tls", path: `${z}/tls` },
    { name: "routes", path: `${z}/routes` },
    { name: "smart-routing", path: `${a}/zones/api.example/routing` },
    { name: "tokens", path: `${a}/tokens` },
    {
      name: "token-new",
      path: `${a}/tokens`,
      prepare: async (page) => page.getByRole("button", { name: "Create a token" }).click(),
    },
    { name: "members", path: `${a}/members` },
    { name: "audit", path: `${a}/audit` },
    { name: "api", path: `${a}/api?filter=dns_records&operation=dns_record_create` },
    { name: "settings", path: `${a}/settings` },
    { name: "images", path: `${a}/images` },
    { name: "images-picture", path: `${a}/images?image=draft-of-a-poster` },
    { name: "images-playground", path: `${a}/images/playground?image=logo` },
    {
      name: "images-formats",
      path: `${a}/images/playground?image=logo&width=40`,
      prepare: async (page) => {
        await page.getByRole("button", { name: "Make 9 pictures" }).click();
        await page.getByText("A press on a size chooses its format and quality.").waitFor();
      },
    },
    { name: "images-settings", path: `${a}/images/settings` },
    { name: "scripts", path: `${a}/scripts` },
    ...["code", "versions", "settings", "secrets", "schedules", "logs"].map((tab) => ({
      name: `script-${tab}`,
      path: `${a}/scripts/shop-orders?tab=${tab}`,
    })),
    {
      name: "script-preview",
      path: `${a}/scripts/visits?tab=code&preview_path=%2Fa%2Fbroken`,
      prepare: async (page) => {
        await page.getByRole("button", { name: "Send" }).click();
        await page.getByRole("region", { name: "Exception 1" }).waitFor();
      },
    },
    {
      name: "script-difference",
      path: `${a}/scripts/visits?tab=versions`,
      prepare: async (page) => {
        await page.getByRole("button", { name: "Actions of version 2", exact: true }).click();
        await page.getByRole("menuitem", { name: "Compare with version 1" }).click();
        await page.getByRole("region", { name: "Lines of index.js" }).waitFor();
      },
    },
    { name: "script-assets", path: `${a}/scripts/site?tab=assets` },
    {
      name: "script-new",
      path: `${a}/scripts`,
      prepare: async (page) => page.getByRole("button", { name: "New script" }).click(),
    },
    {
      name: "script-folder",
      path: `${a}/scripts`,
      prepare: async (page) => {
        await page.getByRole("button", { name: "New script" }).click();
        await page.getByRole("tab", { name: "From a folder" }).click();
        await page.getByLabel("A folder with the built script").setInputFiles("examples/edge");
        await page.getByLabel("Modules").waitFor();
      },
    },
    { name: "workflows", path: `${a}/workflows` },
    { name: "workflow", path: `${a}/workflows/orders` },
    {
      name: "workflow-chosen",
      path: `${a}/workflows/orders`,
      prepare: async (page) => page.getByRole("checkbox", { name: "Select all rows" }).check(),
    },
    { name: "workflow-instance", path: `${a}/workflows/orders/refused` },
    { name: "workflow-step", path: `${a}/workflows/orders/refused?step=step:charge-1` },
    { name: "queues", path: `${a}/queues` },
    {
      name: "queue",
      path: `${a}/queues/${queueId}`,
      prepare: async (page) => {
        await page.getByRole("button", { name: "Peek" }).click();
        await page.getByText("one@shop.example").waitFor();
      },
    },
    {
      name: "queue-consumer",
      path: `${a}/queues/${queueId}`,
      prepare: async (page) => page.getByRole("button", { name: "Add a consumer" }).click(),
    },
    { name: "kv", path: `${a}/kv` },
    { name: "kv-keys", path: `${a}/kv/${namespaceId}` },
    { name: "kv-value", path: `${a}/kv/${namespaceId}?key=colour` },
    {
      name: "as-code",
      path: `${a}/zones`,
      prepare: async (page) => {
        await page.getByRole("button", { name: "Add a zone" }).click();
        await page.getByRole("button", { name: "As code" }).click();
      },
    },
    { name: "d1", path: `${a}/d1` },
    {
      name: "d1-query",
      path: `${a}/d1/shop?sql=select+*+from+articles`,
      prepare: async (page) => {
        await page.getByRole("button", { name: "Run" }).click();
        await page.getByRole("row", { name: "row 3 of 3" }).waitFor();
      },
    },
    {
      name: "d1-row",
      path: `${a}/d1/shop`,
      prepare: async (page) => {
        await page.getByRole("button", { name: "articles", exact: true }).click();
        await page.getByRole("row", { name: "row 1 of 3" }).click();
        await page.getByRole("button", { name: "Delete the row" }).waitFor();
      },
    },
    { name: "d1-tables", path: `${a}/d1/shop?tab=tables` },
    { name: "d1-time-travel", path: `${a}/d1/shop?tab=time` },
    { name: "d1-transfers", path: `${a}/d1/shop?tab=transfers` },
    { name: "logpush", path: `${a}/logpush` },
    {
      name: "logpush-new",
      path: `${z}/logpush`,
      prepare: async (page) => {
        await page.getByRole("button", { name: "New job" }).first().click();
        await page.getByText(/^\d+ fields$/).click();
      },
    },
    { name: "dispatch", path: `${a}/dispatch` },
    { name: "dispatch-customers", path: `${a}/dispatch/customers` },
    { name: "dispatch-usage", path: `${a}/dispatch/customers?tab=usage&order=faults` },
    {
      name: "dispatch-delete",
      path: `${a}/dispatch/customers?tags=trial`,
      prepare: async (page) => {
        await page.getByRole("button", { name: "Delete these" }).click();
        await page.getByLabel("Type 2 to confirm").waitFor();
      },
    },
    { name: "dispatch-customer", path: `${a}/dispatch/customers/anna?tab=settings` },
    { name: "objects", path: `${a}/objects` },
    { name: "objects-of-class", path: `${a}/objects/${objectsId}` },
    {
      name: "object-query",
      path: `${a}/objects/${objectsId}?sql=select+*+from+hits`,
      prepare: async (page) => {
        await page.getByRole("row", { name: "row 1 of 1" }).press("Enter");
        await page.getByLabel("SQL").fill("select * from hits");
        await page.getByRole("button", { name: "Run" }).click();
        await page.getByRole("grid", { name: "Rows of the result" }).waitFor();
      },
    },
    {
      name: "object-restore",
      path: `${a}/objects/${objectsId}`,
      prepare: async (page) => {
        await page.getByRole("row", { name: "row 1 of 1" }).press("Enter");
        await page.getByRole("tab", { name: "Restore" }).click();
      },
    },
    {
      name: "logs",
      path: `${a}/logs`,
      prepare: async (page) => {
        await page.getByText("Following").waitFor();
        await visit("https://shop.example/broken");
        await page.getByRole("row", { name: "row 1 of 1" }).click();
        await page.getByRole("dialog").getByText("The shelf is empty").first().waitFor();
      },
    },
    { name: "keys", path: z, prepare: async (page) => page.keyboard.press("?") },
  ];
}
