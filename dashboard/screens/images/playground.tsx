import { useGet } from "../../core/cache.ts";
import { useSearch } from "../../core/router.ts";
import { SelectField } from "../../parts/form.tsx";
import { Card, Page } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { imagesPath, type Image } from "./image.ts";
import { Choice } from "./option-fields.tsx";
import { Result } from "./result.tsx";
import { ImageTabs } from "./tabs.tsx";
import { Upload } from "./upload.tsx";

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
      about="Try options on a picture, and take the result as an address or as code."
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
