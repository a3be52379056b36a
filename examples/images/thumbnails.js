import { openAsBlob } from "node:fs";
import { writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { account, call } from "../api.js";

/* Uploads a picture, and saves it in three widths as WebP: node examples/images/thumbnails.js photo.jpg */
const [file] = process.argv.slice(2);
if (file === undefined) throw new Error("Give the path of a JPEG, PNG, GIF or WebP file");
const widths = [160, 480, 960];

const form = new FormData();
form.set("file", await openAsBlob(file), basename(file));
const { variants } = await call("POST", `${account}/images/v1`, form);

// A delivery URL ends in the name of a variant, or in options such as these.
const [publicUrl] = variants;
for (const width of widths) {
  const response = await fetch(publicUrl.replace(/public$/, `width=${width},format=webp`));
  if (!response.ok) throw new Error(await response.text());
  const output = `${file.replace(/\.\w+$/, "")}-${width}.webp`;
  await writeFile(output, await response.bytes());
  console.log(output);
}
