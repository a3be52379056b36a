import { expect, it } from "vitest";
import {
  chosenFiles,
  mainsOf,
  modulesOf,
  refusalOf,
  type FolderModules,
} from "../../dashboard/screens/scripts/folder.ts";

/** A choice of a folder, as browsers give it. */
function chosen(paths: readonly string[]): FolderModules {
  const files = paths.map((path) =>
    Object.assign(new File(["x"], path.split("/").at(-1)!), { webkitRelativePath: path }),
  );
  return modulesOf(chosenFiles(files));
}
const many = (folder: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${folder}/${i}.js`);

it("a chosen folder has all of its modules, however many dependencies come before them", () => {
  const found = chosen([
    ...many("shop/node_modules/left", 3000),
    "shop/index.js",
    "shop/lib/tax.js",
    "shop/.env",
  ]);
  expect(found.modules.map(({ path }) => path)).toEqual(["index.js", "lib/tax.js"]);
  expect(found.skipped).toEqual([".env"]);
  expect(refusalOf({ ...found, main: mainsOf(found.modules)[0]! })).toBeUndefined();
});

it("a folder with more files than a version may have modules is refused, not cut", () => {
  expect(refusalOf({ ...chosen(many("shop", 1000)), main: "0.js" })).toBeUndefined();
  expect(refusalOf({ ...chosen(many("shop", 1001)), main: "0.js" })).toContain("more than 1,000 files");
});
