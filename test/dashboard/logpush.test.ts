import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startLogReceiver, type LogReceiver } from "../helpers/log-receiver.ts";
import { browserPath, openConsole, press, type OpenConsole } from "./browser.ts";

/* The jobs of Logpush, in a browser. */
describe.skipIf(browserPath === undefined)("Logpush in the console, in a browser", () => {
  let console: OpenConsole;
  let receiver: LogReceiver;
  beforeAll(async () => {
    receiver = await startLogReceiver();
    console = await openConsole({ privateNetworks: "all", originCa: [receiver.caFile] });
  });
  afterAll(async () => {
    await console[Symbol.asyncDispose]();
    await receiver.close();
  });

  it("makes, pauses and deletes a job, and says at the field why a destination is refused", async () => {
    const account = `/accounts/${console.platform.accountId}`;
    const jobs = async () =>
      console.call<{ dataset: string; enabled: boolean; output_options: { field_names: string[] } }[]>(
        "GET",
        `${account}/logpush/jobs`,
      );
    const page = await console.opened("/logpush");
    await page.getByText("No job yet").waitFor();
    await page.keyboard.press("n");
    await page.getByLabel("Name", { exact: true }).fill("Changes");
    await page.getByLabel("Data set").selectOption("Audit log");
    const destination = page.getByLabel("Destination");
    await destination.fill("https://127.0.0.1:1/logs");
    await press(page, "Create the job");
    await page.getByText("The destination does not accept uploads").waitFor();
    expect(await destination.getAttribute("aria-invalid")).toBe("true");
    expect(await jobs()).toEqual([]);
    await destination.fill(`${receiver.url}?header_Authorization=Bearer%20top-secret`);
    await page.getByText(/^\d+ fields$/).click();
    await page.getByLabel("ActionType", { exact: true }).uncheck();
    await press(page, "Create the job");
    await page.getByText("The job was created").waitFor();
    // The credentials are not shown.
    const row = page.getByRole("row", { name: /Changes/ });
    await row.getByText("header_Authorization=REDACTED").waitFor();
    const [made] = await jobs();
    expect(made).toMatchObject({ dataset: "audit_logs_v2", enabled: true });
    expect(made!.output_options.field_names.length).toBeGreaterThan(5);
    expect(made!.output_options.field_names).not.toContain("ActionType");
    const menu = row.getByRole("button", { name: "Actions of Changes" });
    await menu.click();
    await page.getByRole("menuitem", { name: "Pause" }).click();
    await row.getByText("paused").waitFor();
    expect((await jobs())[0]?.enabled).toBe(false);
    await menu.click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await press(page, "Delete the job");
    await page.getByText("No job yet").waitFor();
    expect(await jobs()).toEqual([]);
    await page.context().close();
  });

  it("11: has asked no other origin, and broken no policy", () => {
    expect(console.foreign).toEqual([]);
    expect(console.faults).toEqual([]);
    expect(console.refused).toEqual([]);
  });
});
