import { expect, it } from "vitest";
import {
  inAddress,
  optionsIn,
  optionsInScript,
  optionsInVariant,
  optionsText,
  scriptCode,
  variantJson,
} from "../../dashboard/screens/images/options.ts";
import { parseOptions, parseTransform } from "../../src/products/images/recipe/options.ts";

const base = "http://127.0.0.1/cdn-cgi/imagedelivery/hash/shoe/";
const options = { width: "400", fit: "cover", gravity: "0.2x0.8", background: "#ff0000", anim: "false" };

it("options are the same as an address, as code and again as options", () => {
  const text = optionsText(options);
  expect(optionsIn(text)).toEqual(options);
  expect(inAddress(`${base}${text}?sig=1`, base)).toEqual({ options });
  const code = scriptCode(`${base}public`, options);
  expect(optionsInScript(code)).toEqual(options);
  // The platform reads both as the same transformation.
  const object = JSON.parse(/image: (\{[^}]*\})/.exec(code)![1]!) as object;
  expect(parseTransform(object)).toEqual(parseOptions(text));
});

it("reads code as people write it, short names, and a part of an address", () => {
  const written = "fetch(url, { cf: { image: { width: 80, 'fit': 'crop', gravity: { x: 0.1, y: 1 }, } } })";
  expect(optionsInScript(written)).toEqual({ width: "80", fit: "crop", gravity: "0.1x1" });
  expect(optionsInScript("{}")).toEqual({});
  expect(inAddress("w=80,q=50,f=webp", base)).toEqual({
    options: { width: "80", quality: "50", format: "webp" },
  });
  expect(inAddress(`${base}thumb`, base)).toEqual({ variant: "thumb" });
});

it("a variant has its own options, and those that it needs", () => {
  expect(JSON.parse(variantJson({ ...options, blur: "2" }))).toEqual({
    fit: "cover",
    metadata: "none",
    width: 400,
    blur: 2,
  });
  expect(optionsInVariant('{"fit":"pad","width":80,"height":60,"browser_ttl":3600}')).toEqual({
    fit: "pad",
    width: "80",
    height: "60",
  });
});

it.each([
  [() => optionsIn("widht=4"), "“widht” is no option of this page"],
  [() => optionsIn("width"), "expected name=value but received “width”"],
  [() => inAddress("http://127.0.0.1/other/width=4", base), `expected an address that begins with ${base}`],
  [() => inAddress(base, base), "expected a variant, or options such as width=400"],
  [() => optionsInVariant('{"quality":4}'), "“quality” is no option of a variant: fit, width"],
  [() => optionsInVariant("[]"), "expected an object"],
  [() => optionsInScript("fetch(url)"), "expected cf: { image: { … } }"],
  [() => optionsInScript("{ width: 4, draw: [1] }"), "expected name: value but received “draw: [1] }”"],
  [() => optionsInScript("{ trim: { left: 4 } }"), "expected a text or a number for trim"],
])("says what is wrong: %#", (read, message) => {
  expect(read).toThrow(message);
});
