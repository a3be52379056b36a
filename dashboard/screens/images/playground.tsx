import { useEffect, useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { bytes, duration } from "../../core/format.ts";
import { setSearch, useLocation, useSearch } from "../../core/router.ts";
import { Code } from "../../code/as-code.tsx";
import { SelectField, TextField } from "../../parts/form.tsx";
import { Card, Copyable, Figure, Page } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { baseOf, imagesPath, type Image } from "./image.ts";
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
      about="Options on the left, the same as an address and as code, and the picture that the edge delivers."
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
                <Options />
              </Card>
              <Result key={image.id} base={baseOf(image)} name={image.filename} />
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
                    ...option.values.map((value) => ({ value, label: value })),
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

interface Shown {
  url: string;
  size: number;
  type: string;
  ms: number;
  width: number;
  height: number;
}

const waitMs = 150;

function Result({ base, name }: { base: string; name: string }) {
  const text = optionsText(useOptions());
  const url = `${base}${text || "public"}`;
  const before = useDelivered(`${base}public`);
  const after = useDelivered(url);
  const [code, setCode] = useState<"url" | "fetch" | "html">("url");
  const codes = {
    url,
    fetch: `return fetch(${JSON.stringify(`${base}public`)}, {\n  cf: { image: ${JSON.stringify(Object.fromEntries(text.split(",").map((pair) => pair.split("=").map(decodeURIComponent))), null, 2).replaceAll("\n", "\n  ")} },\n});`,
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
            `${Math.round((after.shown.size / before.shown.size) * 100)} % of ${bytes(before.shown.size)}`
          }
        />
        <Figure
          name="Pixels"
          value={after.shown === undefined ? "–" : `${after.shown.width} × ${after.shown.height}`}
          note={before.shown && `of ${before.shown.width} × ${before.shown.height}`}
        />
        <Figure
          name="Format"
          value={after.shown?.type.replace("image/", "") ?? "–"}
          note={before.shown && `of ${before.shown.type.replace("image/", "")}`}
        />
        <Figure
          name="Time"
          value={after.shown === undefined ? "–" : duration(after.shown.ms)}
          note="with the way to this browser"
        />
      </div>
      <figure class="picture">
        {after.shown && <img src={after.shown.url} alt={`${name} with ${text || "no options"}`} />}
      </figure>
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

/** A picture as the edge delivers it. The last one stays until the next one is loaded. */
function useDelivered(url: string): { shown: Shown | undefined; fault: string | undefined } {
  const [shown, setShown] = useState<Shown | undefined>(undefined);
  const [fault, setFault] = useState<string | undefined>(undefined);
  useEffect(() => {
    const controller = new AbortController();
    const show = async (): Promise<void> => {
      try {
        const next = await read(url, controller.signal);
        setShown(next);
        setFault(undefined);
      } catch (error) {
        if (!controller.signal.aborted) setFault((error as Error).message);
      }
    };
    const timer = setTimeout(() => void show(), waitMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [url]);
  useEffect(() => () => URL.revokeObjectURL(shown?.url ?? ""), [shown]);
  return { shown, fault };
}

async function read(url: string, signal: AbortSignal): Promise<Shown> {
  const startedAt = performance.now();
  const response = await fetch(url, { signal, headers: { accept: "image/avif,image/webp,*/*" } });
  if (!response.ok) throw new Error((await response.text()) || `The edge answered ${response.status}`);
  const blob = await response.blob();
  const ms = performance.now() - startedAt;
  const { width, height } = await createImageBitmap(blob);
  return { url: URL.createObjectURL(blob), size: blob.size, type: blob.type, ms, width, height };
}
