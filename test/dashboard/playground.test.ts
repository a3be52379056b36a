import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jpegOf, scenery } from "../images/fixtures.ts";
import { browserPath, openConsole, press, type OpenConsole } from "./browser.ts";

/* The transform playground, in a browser. The numbers are those of the acceptance cases of the design. */
describe.skipIf(browserPath === undefined)("the transform playground, in a browser", () => {
  let console: OpenConsole;
  let images: string;
  beforeAll(async () => {
    console = await openConsole();
    images = `/accounts/${console.platform.accountId}/images/v1`;
    const bytes = new Uint8Array(await jpegOf(scenery(400, 300)));
    for (const [id, isPrivate] of [
      ["shoe", false],
      ["secret", true],
    ] as const) {
      const form = new FormData();
      form.set("file", new File([bytes], `${id}.jpg`, { type: "image/jpeg" }));
      form.set("id", id);
      form.set("requireSignedURLs", String(isPrivate));
      await console.call("POST", images, form);
    }
    const options = { fit: "cover", width: 90, height: 60, metadata: "none" };
    await console.call("POST", `${images}/variants`, { id: "card", options });
  });
  afterAll(async () => console[Symbol.asyncDispose]());

  const opened = async (query: string): Promise<Page> => console.opened(`/images/playground?${query}`);
  const figure = (page: Page, name: string) =>
    page.locator(".figure", { has: page.getByText(name, { exact: true }) });
  const pixels = async (page: Page, text: string): Promise<void> =>
    figure(page, "Pixels").getByText(text, { exact: true }).waitFor();

  it("compares the original with its result, at a divider that keys move", async () => {
    const page = await opened("image=shoe&width=120&format=webp");
    const divider = page.getByRole("slider", { name: "Divider between the original and the result" });
    await divider.focus();
    await page.keyboard.press("ArrowRight");
    expect(await divider.getAttribute("aria-valuetext")).toBe("51 % original, 49 % result");
    const clip = async (name: string): Promise<string> =>
      page.getByRole("img", { name }).evaluate((image) => {
        const view = globalThis as unknown as {
          getComputedStyle(element: unknown): { clipPath: string };
        };
        return view.getComputedStyle(image).clipPath;
      });
    expect(await clip("shoe.jpg, the original")).toBe("inset(0px 49% 0px 0px)");
    expect(await clip("shoe.jpg with width=120,format=webp")).toBe("inset(0px 0px 0px 51%)");
    await page.keyboard.press("Home");
    expect(await divider.inputValue()).toBe("0");
    await page.keyboard.press("End");
    expect(await divider.inputValue()).toBe("100");
    await page.context().close();
  });

  it("33: shows what the edge has measured, and whether it made the picture", async () => {
    const page = await opened("image=shoe&width=121&format=webp");
    await pixels(page, "121 × 91");
    const time = figure(page, "Time");
    await time.getByText(/^[\d.]+ m?s to make it, after [\d.]+ m?s in the queue$/).waitFor();
    await page.reload();
    await time.getByText("from the cache of the edge, or the original").waitFor();
    await page.context().close();
  });

  it("reads options from an address, a variant and code, and says what is wrong there", async () => {
    const page = await opened("image=shoe&width=120");
    const address = page.getByRole("textbox", { name: "Address of the result" });
    const url = await address.inputValue();
    await address.fill(url.replace("width=120", "w=80,h=40,fit=cover"));
    await pixels(page, "80 × 40");
    expect(await page.getByLabel("fit", { exact: true }).inputValue()).toBe("cover");
    expect(new URL(page.url()).searchParams.get("height")).toBe("40");
    await address.fill(url.replace("width", "widht"));
    await page.getByText("“widht” is no option of this page").waitFor();
    // The controls are used, so the text follows them again.
    await page.getByLabel("width", { exact: true }).fill("60");
    await expect.poll(() => address.inputValue()).toContain("/width=60,height=40,fit=cover");

    await page.getByRole("tab", { name: "Variant" }).click();
    const variant = page.getByRole("textbox", { name: "Options of a variant" });
    expect(JSON.parse(await variant.inputValue())).toMatchObject({ width: 60, height: 40, fit: "cover" });
    await variant.fill('{ "fit": "squeeze", "width": 50, "height": 70, "metadata": "none" }');
    await pixels(page, "50 × 70");
    await variant.fill("{ quality: 4");
    expect(await variant.getAttribute("aria-invalid")).toBe("true");

    await page.getByRole("tab", { name: "In a script" }).click();
    const code = page.getByRole("textbox", { name: "Code in a script" });
    expect(await code.inputValue()).toContain('"fit": "squeeze"');
    await code.fill("fetch(url, { cf: { image: { width: 44, gravity: { x: 0.5, y: 1 } } } })");
    await pixels(page, "44 × 33");
    expect(await page.getByLabel("gravity", { exact: true }).inputValue()).toBe("0.5x1");

    await page.getByRole("tab", { name: "Address" }).click();
    await address.fill("card");
    await pixels(page, "90 × 60");
    expect(await page.getByLabel("Variant", { exact: true }).first().inputValue()).toBe("card");
    await address.fill("width=30");
    await page.getByLabel("width", { exact: true }).fill("");
    await expect.poll(() => address.inputValue()).toMatch(/\/shoe\/public$/);
    await page.context().close();
  });

  it("makes the picture in three formats and qualities, and takes one of them", async () => {
    const page = await opened("image=shoe&width=122");
    await press(page, "Make 9 pictures");
    const table = page.getByRole("region", { name: "Formats and qualities", exact: true });
    const sizes = table.getByRole("button");
    await expect.poll(() => sizes.count()).toBe(9);
    await page.getByText("A press on a size chooses its format and quality.").waitFor();
    const base = (await page.getByRole("textbox", { name: "Address of the result" }).inputValue()).replace(
      /[^/]*$/,
      "",
    );
    const response = await console.platform.fetch(`${base}width=122,format=jpeg,quality=70`);
    const { length } = await response.bytes();
    expect(response.headers.get("cf-cache-status")).toBe("HIT");
    const taken = table.getByRole("button", { name: /take jpeg with quality 70/ });
    const shown = length < 1024 ? `${length} B` : `${(length / 1024).toFixed(1)} KiB`;
    expect(await taken.textContent()).toBe(shown);
    await taken.press("Enter");
    await figure(page, "Size").getByText(shown, { exact: true }).waitFor();
    expect(await page.getByLabel("quality", { exact: true }).inputValue()).toBe("70");
    expect(await taken.getAttribute("aria-pressed")).toBe("true");
    await page.context().close();
  });

  it("35: shows a private picture under an address that ends", async () => {
    const page = await opened("image=secret&width=66");
    await pixels(page, "66 × 50");
    const shown = page.getByRole("region").or(page.locator(".card")).filter({ hasText: "Signed address" });
    const address = new URL((await shown.locator(".copyable code").first().textContent())!);
    expect((await console.platform.fetch(address)).status).toBe(200);
    address.searchParams.set("exp", "2000000000");
    expect((await console.platform.fetch(address)).status).toBe(403);
    await page.getByLabel("Minutes").fill("120");
    await page.getByText(/It ends in 2h/).waitFor();
    await page.context().close();
  });

  it("11: has asked no other origin, and broken no policy", () => {
    expect([[...new Set(console.foreign)], [...new Set(console.faults)]]).toEqual([[], []]);
  });
});
