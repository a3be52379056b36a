import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { bytes, duration } from "../../core/format.ts";
import { setSearch, useLocation, useSearch } from "../../core/router.ts";
import { Code } from "../../code/as-code.tsx";
import { SelectField, TextField } from "../../parts/form.tsx";
import { Card, Copyable, Figure, Folded, Page } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { fromApi, useDelivered } from "./delivered.ts";
import { baseOf, imagePath, imagesPath, type Image, type Variant } from "./image.ts";
import { ImageTabs } from "./tabs.tsx";
import { Upload } from "./upload.tsx";
import { groups, optionsText, optionNames } from "./options.ts";

/** Tries transformations on a picture: options, address, code, and the picture with its size and time. */
export default function Playground({ account }: ScreenProps) {
  const path = imagesPath(account);
  const images = useGet<{ images: Image[] }>(`${path}?per_page=100`);
  const list = images.data?.images ?? [];
  const [chosen, setChosen] = useSearch("image");
  const image = list.find(({ id }) => id === chosen) ?? list[0];
  const add = <Upload account={account} onDone={({ id }) => setChosen(id)} />;
  return (
    <Page
      title="Images"
      about="Options, the same as an address and as code, and the picture that the edge delivers."
      actions={add}
    >
      <ImageTabs account={account} current="playground" />
      <Loaded of={images}>
        {() =>
          image === undefined ? (
            <Empty icon="images" title="No picture yet" actions={add}>
              <p>Upload one to try sizes, crops, colours and formats on it.</p>
            </Empty>
          ) : (
            <div class="playground">
              <Card class="playground-options">
                <SelectField
                  label="Picture"
                  value={image.id}
                  onChange={(id) => setChosen(id, false)}
                  options={list.map(({ id, filename }) => ({ value: id, label: filename || id }))}
                />
                <Choice account={account} />
              </Card>
              <Result key={image.id} account={account} image={image} />
            </div>
          )
        }
      </Loaded>
    </Page>
  );
}

/** The chosen options, from the address bar. */
function useOptions(): Record<string, string> {
  const { query } = useLocation();
  return Object.fromEntries(
    optionNames.map((name) => [name, query.get(name) ?? (name === "width" ? "600" : "")]),
  );
}

/** A variant of the account, or options. */
function Choice({ account }: { account: string }) {
  const [variant, setVariant] = useSearch("variant");
  const variants = useGet<{ variants: Record<string, Variant> }>(`${imagesPath(account)}/variants`);
  return (
    <>
      <SelectField
        label="Variant"
        value={variant}
        onChange={setVariant}
        options={[
          { value: "", label: "None: the options below" },
          ...Object.keys(variants.data?.variants ?? {}).map((id) => ({ value: id, label: id })),
        ]}
      />
      {variant === "" && (
        <Folded title="Options">
          <Options />
        </Folded>
      )}
    </>
  );
}

function Options() {
  const values = useOptions();
  return (
    <>
      {groups.map(({ title, options }) => (
        <fieldset key={title} class="option-group">
          <legend>{title}</legend>
          <div class="form-row">
            {options.map((option) =>
              "values" in option ? (
                <SelectField
                  key={option.name}
                  label={option.name}
                  value={values[option.name]!}
                  onChange={(value) => setSearch({ [option.name]: value })}
                  options={[
                    { value: "", label: "–" },
                    ...new Set([...option.values, values[option.name]!].filter((value) => value !== "")),
                  ]}
                />
              ) : (
                <TextField
                  key={option.name}
                  label={option.name}
                  value={values[option.name]!}
                  placeholder={option.hint ?? ""}
                  onChange={(value) => setSearch({ [option.name]: value })}
                />
              ),
            )}
          </div>
        </fieldset>
      ))}
    </>
  );
}

/** The original, of which a click chooses the point that a crop keeps. A key chooses the middle. */
const Focus = ({ url }: { url: string }) => (
  <button
    type="button"
    class="focus-picture"
    onClick={({ currentTarget, clientX, clientY, detail }) => {
      const { left, top, width, height } = currentTarget.getBoundingClientRect();
      const [x, y] = detail === 0 ? [0.5, 0.5] : [(clientX - left) / width, (clientY - top) / height];
      setSearch({ gravity: `${x.toFixed(2)}x${y.toFixed(2)}` });
    }}
  >
    <img src={url} alt="The original: a click sets the gravity to its point" />
  </button>
);

const formatOf = (type: string): string => type.replace("image/", "");

/** Why the picture has another format than the original. */
const formatNote = (before: string, after: string, isAsked: boolean): string =>
  before === after
    ? "as the original"
    : `the original is ${formatOf(before)}; ${isAsked ? "the options ask for" : "this browser shows"} ${formatOf(after)}`;

/** The picture that the edge delivers, compared with the original. */
function Result({ account, image }: { account: string; image: Image }) {
  const base = baseOf(image);
  const [variant] = useSearch("variant");
  const options = optionsText(useOptions());
  const text = variant || options;
  const url = `${base}${text || "public"}`;
  const before = useDelivered(`${imagePath(account, image.id)}/blob`, fromApi);
  const after = useDelivered(url);
  const isAsked = variant === "" && /(^|,)(f|format)=(?!auto)/.test(options);
  const [code, setCode] = useState<"url" | "fetch" | "html">("url");
  const codes = {
    url,
    fetch:
      variant === ""
        ? `return fetch(${JSON.stringify(`${base}public`)}, {\n  cf: { image: ${JSON.stringify(Object.fromEntries(text.split(",").map((pair) => pair.split("=").map(decodeURIComponent))), null, 2).replaceAll("\n", "\n  ")} },\n});`
        : `return fetch(${JSON.stringify(url)});`,
    html: `<img src=${JSON.stringify(url)} width="${after.shown?.width ?? ""}" height="${after.shown?.height ?? ""}" alt="" loading="lazy">`,
  };
  return (
    <div class="stack">
      {after.fault !== undefined && (
        <p class="form-failure" role="alert">
          {after.fault}
        </p>
      )}
      <div class="figures">
        <Figure
          name="Size"
          value={after.shown === undefined ? "–" : bytes(after.shown.size)}
          note={
            before.shown &&
            after.shown &&
            `${Math.round((after.shown.size / before.shown.size) * 100)} % of the original’s ${bytes(before.shown.size)}`
          }
        />
        <Figure
          name="Pixels"
          value={after.shown === undefined ? "–" : `${after.shown.width} × ${after.shown.height}`}
          note={before.shown && `of ${before.shown.width} × ${before.shown.height}`}
        />
        <Figure
          name="Format"
          value={after.shown === undefined ? "–" : formatOf(after.shown.type)}
          note={before.shown && after.shown && formatNote(before.shown.type, after.shown.type, isAsked)}
        />
        <Figure
          name="Time"
          value={after.shown === undefined ? "–" : duration(after.shown.ms)}
          note="with the way to this browser"
        />
      </div>
      <figure class="picture">
        {after.shown && <img src={after.shown.url} alt={`${image.filename} with ${text || "no options"}`} />}
      </figure>
      {variant === "" && before.shown && <Focus url={before.shown.url} />}
      <Copyable text={url} />
      <Tabs
        label="As code"
        tabs={[
          { key: "url", name: "Address" },
          { key: "fetch", name: "In a script" },
          { key: "html", name: "HTML" },
        ]}
        current={code}
        onChange={setCode}
      >
        <Code text={codes[code]} />
      </Tabs>
    </div>
  );
}
