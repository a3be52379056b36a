import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { startHosting, startOutside, type Hosting, type Outside } from "./platform.ts";

let hosting: Hosting;
let supplier: Outside;

const deploy = async (): Promise<string> => {
  const { stdout } = await promisify(execFile)(process.execPath, ["examples/multi-tenant/deploy.js"], {
    env: {
      CLOUDFLARE_BASE_URL: hosting.ready.api,
      CLOUDFLARE_API_TOKEN: ownerToken,
      CLOUDFLARE_ACCOUNT_ID: hosting.account,
    },
  });
  return stdout;
};

beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  supplier = await startOutside(({ headers }, response) =>
    response.end(`${String(headers["x-shop"])} on ${String(headers["x-plan"])}`),
  );
  expect(await deploy()).toBe("http://fern.shops.example/\nhttp://moss.shops.example/\n");
});
afterAll(async () => {
  await supplier.close();
  await hosting.close(0);
});

const shop = async (name: string, path = "/"): Promise<{ status: number; body: string }> => {
  const { status, body } = await hosting.askHost(`${name}.shops.example`, path);
  return { status, body };
};
const prices = (...suppliers: string[]): string =>
  `/prices?${suppliers.map((each) => `supplier=${encodeURIComponent(each)}`).join("&")}`;

describe("the multi-tenant example", () => {
  test("serves each customer by its host, from its own store", async () => {
    expect(await shop("fern")).toEqual({ status: 200, body: "fern has had 1 visits.\n" });
    expect(await shop("fern")).toEqual({ status: 200, body: "fern has had 2 visits.\n" });
    expect(await shop("moss")).toEqual({ status: 200, body: "moss has had 1 visits.\n" });
    expect(await shop("ivy")).toEqual({ status: 404, body: "There is no such shop.\n" });
  });

  test("lets fetches out by the outbound script, which blocks one host and adds headers", async () => {
    const { status, body } = await shop("moss", prices(supplier.url, "http://blocked.example/"));
    expect([status, JSON.parse(body)]).toEqual([
      200,
      [
        { status: 200, text: "moss on large" },
        { status: 403, text: "blocked.example is blocked.\n" },
      ],
    ]);
  });

  test("holds each customer to its plan", async () => {
    const five = prices(...Array.from({ length: 5 }, () => supplier.url));
    expect((await shop("moss", five)).status).toBe(200);
    expect(await shop("fern", five)).toEqual({
      status: 500,
      body: "The shop is out of order: Too many subrequests.\n",
    });
    expect(await shop("fern", "/sort")).toEqual({
      status: 500,
      body: "The shop is out of order: Worker exceeded CPU time limit.\n",
    });
    expect((await shop("fern")).status).toBe(200);
  });

  test("can be deployed again without losing anything", async () => {
    const before = (await shop("moss")).body;
    await deploy();
    expect((await shop("moss")).body).toBe(before.replace(/\d+/, (visits) => String(Number(visits) + 1)));
  });
});
