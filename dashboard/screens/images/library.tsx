import { useGet } from "../../core/cache.ts";
import { plural } from "../../core/format.ts";
import { useSearch } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Page } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { ImagePanel } from "./image-panel.tsx";
import { baseOf, imagesPath, nameOf, type Image } from "./image.ts";
import { ImageTabs } from "./tabs.tsx";
import { Upload } from "./upload.tsx";

const perPage = 60;

/** The stored pictures, the newest first. */
export default function Library({ account }: ScreenProps) {
  const path = imagesPath(account);
  const [place, setPlace] = useSearch("page", "1");
  const page = Math.max(1, Math.trunc(Number(place)) || 1);
  const images = useGet<{ images: Image[] }>(`${path}?per_page=${perPage}&page=${page}`);
  const config = useGet<{ flexible_variants: boolean }>(`${path}/config`);
  const [chosen, setChosen] = useSearch("image");
  const total = images.info.total_count ?? 0;
  // Options in the address are refused unless the account allows them.
  const variant = config.data?.flexible_variants === true ? "width=240,height=180,fit=cover" : "public";
  const add = <Upload account={account} onDone={({ id }) => setChosen(id)} />;
  return (
    <Page
      title="Images"
      about={total > 0 ? plural(total, "picture") : "Pictures that this account stores and delivers."}
      actions={add}
    >
      <ImageTabs account={account} current="" />
      <Loaded of={images}>
        {({ images: list }) =>
          list.length === 0 && page === 1 ? (
            <Empty icon="images" title="No picture yet" actions={add}>
              <p>Upload some to see them here, and to deliver them in any size.</p>
            </Empty>
          ) : (
            <div class="stack">
              <ul class="thumbnails" aria-label="Pictures">
                {config.isLoading
                  ? null
                  : list.map((image) => (
                      <li key={image.id}>
                        <button type="button" onClick={() => setChosen(image.id, false)}>
                          <Thumbnail image={image} variant={variant} />
                          <span>{nameOf(image)}</span>
                        </button>
                      </li>
                    ))}
              </ul>
              {total > perPage && (
                <div class="row">
                  <Button
                    refusal={page === 1 ? "these are the newest" : undefined}
                    onPress={() => setPlace(String(page - 1), false)}
                  >
                    Newer
                  </Button>
                  <span class="faint">
                    Page {page} of {Math.ceil(total / perPage)}
                  </span>
                  <Button
                    refusal={page * perPage >= total ? "these are the oldest" : undefined}
                    onPress={() => setPlace(String(page + 1), false)}
                  >
                    Older
                  </Button>
                </div>
              )}
            </div>
          )
        }
      </Loaded>
      {chosen !== "" && <ImagePanel account={account} id={chosen} onClose={() => setChosen("")} />}
    </Page>
  );
}

/** A small picture. One that needs a signed address, and one that is not uploaded yet, have an icon. */
function Thumbnail({ image, variant }: { image: Image; variant: string }) {
  if (image.draft || image.requireSignedURLs)
    return (
      <span class="thumbnail">
        <Icon name={image.draft ? "upload" : "lock"} />
        <small>{image.draft ? "waits for its upload" : "private"}</small>
      </span>
    );
  return <img class="thumbnail" src={`${baseOf(image)}${variant}`} alt="" loading="lazy" />;
}
