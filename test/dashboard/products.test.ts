import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, openConsole, press, type OpenConsole } from "./browser.ts";
import { makeData, scriptForm } from "./data.ts";

/* Screens of the products, in a browser. The numbers are those of the acceptance cases of the design. */
describe.skipIf(browserPath === undefined)("the products in the console, in a browser", () => {
  let console: OpenConsole;
  let data: Awaited<ReturnType<typeof makeData>>;
  let account: string;
  beforeAll(async () => {
    console = await openConsole();
    data = await makeData(console);
    account = console.platform.accountId;
  });
  afterAll(async () => console[Symbol.asyncDispose]());

  const api = async <T>(method: string, path: string, body?: unknown): Promise<T> =>
    console.call<T>(method, `/accounts/${account}${path}`, body);

  it("36, 38: shows attempts with their errors, and says why a change is impossible", async () => {
    const page = await console.opened("/workflows");
    await page.getByRole("link", { name: "1 errored instance of orders" }).click();
    await page.getByRole("row", { name: "row 1 of 1" }).getByRole("link", { name: "refused" }).click();
    await press(page, "Go to the error");
    const panel = page.getByRole("dialog");
    await panel.getByText("The card was refused").first().waitFor();
    expect(await panel.locator(".attempts li").count()).toBe(2);
    await page.keyboard.press("Escape");
    const terminate = page.getByRole("button", { name: "Terminate", exact: true });
    expect(await terminate.getAttribute("aria-disabled")).toBe("true");
    expect(await page.getByText("it is errored").count()).toBeGreaterThan(0);
    await page.context().close();
  });

  it("pauses, resumes and ends an instance, which is followed without a reload", async () => {
    const page = await console.opened("/workflows/orders/waiting");
    await press(page, "Pause");
    await page.locator(".about", { hasText: "paused" }).waitFor();
    await press(page, "Resume");
    await page.locator(".about", { hasText: "waiting" }).waitFor();
    await press(page, "Send an event");
    await page.getByLabel("Type", { exact: true }).fill("shipment");
    await press(page, "Send");
    await page.locator(".about", { hasText: "complete" }).waitFor();
    await page.context().close();
  });

  it("49: peeks a queue whose consumer still gets the messages, sends one, and purges by typing the name", async () => {
    const queue = `/queues/${data.queueId}`;
    const page = await console.opened(queue);
    await press(page, "Peek");
    await page.getByText("one@shop.example").waitFor();
    await press(page, "Send a message");
    await page.getByLabel("Body", { exact: true }).fill('{ "to": "two@shop.example" }');
    await press(page, "Send");
    await page.getByText("The message was sent").waitFor();
    const depth = async (): Promise<number> =>
      (await api<{ backlog_count: number }>("GET", `${queue}/metrics`)).backlog_count;
    await expect.poll(depth).toBe(2);
    await page.getByText("two@shop.example").waitFor();
    const taker = `export default {
      async queue({ messages }, { KV }) {
        for (const { body, attempts } of messages) await KV.put("mail:" + body.to, String(attempts));
      },
    };`;
    const bindings = [{ type: "kv_namespace", name: "KV", namespace_id: data.namespaceId }];
    await api("PUT", "/workers/scripts/taker", scriptForm(taker, { bindings }));
    const settings = { max_wait_time_ms: 0 };
    const consumer = await api<{ consumer_id: string }>("POST", `${queue}/consumers`, {
      type: "worker",
      script_name: "taker",
      settings,
    });
    await expect.poll(depth).toBe(0);
    const values = `/storage/kv/namespaces/${data.namespaceId}/bulk/get`;
    const keys = ["mail:one@shop.example", "mail:two@shop.example"];
    // A peek is no attempt.
    expect(await api("POST", values, { keys })).toEqual({
      values: Object.fromEntries(keys.map((key) => [key, "1"])),
    });
    await api("DELETE", `${queue}/consumers/${consumer.consumer_id}`);
    await api("POST", `${queue}/messages`, { body: { to: "three@shop.example" } });
    await press(page, "More");
    await page.getByRole("menuitem", { name: "Purge all messages" }).click();
    const purge = page.getByRole("dialog").getByRole("button", { name: "Purge", exact: true });
    expect(await purge.getAttribute("aria-disabled")).toBe("true");
    await page.getByLabel("Type mails to confirm").fill("mails");
    expect(await depth()).toBe(1);
    await purge.click();
    await page.getByText("The queue was purged").waitFor();
    await expect.poll(depth).toBe(0);
    await page.context().close();
  });

  it("finds keys by prefix, and edits a value", async () => {
    const page = await console.opened(`/kv/${data.namespaceId}`);
    await page.getByLabel("Keys that begin with").fill("page:");
    await page.getByRole("row", { name: "row 1 of 2" }).waitFor();
    await page.getByText("page:home").click();
    const field = page.getByLabel("Value", { exact: true });
    expect(await field.inputValue()).toBe("value of page:home");
    await field.fill("grün");
    await press(page, "Save");
    await page.getByText("The value was saved").waitFor();
    const value = await fetch(
      `${console.platform.urls.api}/accounts/${account}/storage/kv/namespaces/${data.namespaceId}/values/page%3Ahome`,
      { headers: { authorization: `Bearer ${console.platform.token}` } },
    );
    expect(await value.text()).toBe("grün");
    await page.context().close();
  });

  it("42, 43: switches smart routing on, shows the quantiles of the paths, and that one is set aside", async () => {
    const page = await console.opened("/zones/api.example/routing");
    const routing = page.getByRole("switch", { name: "Smart routing" });
    await routing.click();
    await page.getByText("Smart routing is off").waitFor();
    await routing.click();
    for (let turn = 0; turn < 20; turn++) await data.visit("https://api.example/");
    await page.getByText(/^too few requests: \d+ of 500, \d+ of 10 direct$/).waitFor();
    const paths = page.getByRole("region", { name: "Paths", exact: true }).getByRole("row");
    const quicker = paths.filter({ hasText: "127.0.0.2" });
    await quicker.getByRole("img", { name: "Times of 127.0.0.2" }).waitFor();
    const visitUntil = async (shown: Locator): Promise<void> =>
      expect
        .poll(async () => {
          await Promise.all(Array.from({ length: 50 }, async () => data.visit("https://api.example/")));
          return shown.isVisible();
        })
        .toBe(true);
    await visitUntil(quicker.getByText("chosen"));
    data.breakPath();
    // Requests that come one by one leave the path after fewer failures than exclude it; explorations add the others.
    await visitUntil(quicker.getByText("set aside, tried in"));
    await paths.filter({ hasText: "127.0.0.1" }).getByText("chosen").waitFor();
    await page.context().close();
  });

  it("27: asks the name server, and shows what dig prints", async () => {
    const page = await console.opened(`/zones/${data.zone.name}/dns`);
    await page.keyboard.press("q");
    await page.getByLabel("Name", { exact: true }).fill("mail.shop.example");
    await press(page, "Ask");
    const answer = page.getByRole("region", { name: "Answer" });
    await answer.waitFor();
    expect(await answer.textContent()).toMatch(
      /NOERROR[^]*mail\.shop\.example\.\s+3600\s+IN\s+A\s+192\.0\.2\.25/,
    );
    await page.context().close();
  });

  // They move the clock, so they are the last ones.
  it("35: signs an address of a private picture, which is refused after its time", async () => {
    const page = await console.opened("/images?image=draft-of-a-poster");
    const signed = page.getByRole("dialog").locator(".copyable code").last();
    const minutesLeft = async (): Promise<number> => {
      const expires = new URL((await signed.textContent())!, "http://none").searchParams.get("exp");
      return Math.round((Number(expires) * 1000 - Date.now()) / 60_000);
    };
    await expect.poll(minutesLeft).toBeGreaterThan(50);
    await page.getByLabel("Minutes").fill("10");
    await expect.poll(minutesLeft).toBeLessThan(20);
    await page.getByText(/^It ends /).waitFor();
    const visit = async (): Promise<number> =>
      (await console.platform.fetch((await signed.textContent())!)).status;
    expect(await visit()).toBe(200);
    await console.platform.clock.advance("11 minutes");
    expect(await visit()).toBe(403);
    await page.context().close();
  });

  it("36: starts an instance whose step fails, and shows its attempts with their errors as they come", async () => {
    const page = await console.opened("/workflows/orders");
    await press(page, "Start an instance");
    await page.getByLabel("Parameters").fill('{ "card": "stolen", "retryDelay": "20 minutes" }');
    await page.getByLabel("Id", { exact: true }).fill("live");
    await press(page, "Start");
    await page.getByRole("heading", { name: "live" }).waitFor();
    await page.getByRole("row").filter({ hasText: "charge" }).click();
    const attempts = page.getByRole("dialog").locator(".attempts li");
    await attempts.filter({ hasText: "failed" }).filter({ hasText: "Error: The card was refused" }).waitFor();
    expect(await attempts.count()).toBe(1);
    await console.platform.clock.advance("20 minutes");
    await attempts.nth(1).filter({ hasText: "failed" }).filter({ hasText: "The card was refused" }).waitFor();
    await page.locator(".about", { hasText: "errored" }).waitFor();
    expect(await attempts.count()).toBe(2);
    await page.context().close();
  });

  it("11: has asked no other origin, and broken no policy", () => {
    expect([[...new Set(console.foreign)], [...new Set(console.faults)]]).toEqual([[], []]);
  });
});
