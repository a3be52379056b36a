import { useEffect, useState } from "preact/hooks";
import { useAsync } from "../../core/async.ts";
import { useGet } from "../../core/cache.ts";
import { answerOf, send } from "../../core/client.ts";
import { download } from "../../core/download.ts";
import { bytes } from "../../core/format.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ActionForm, Switch, TextField, useForm } from "../../parts/form.tsx";
import { Copyable, Facts, Time } from "../../parts/layout.tsx";
import { Failure, Loaded } from "../../parts/states.tsx";
import { fromEdgePlain, useDelivered, type Delivered } from "./delivered.ts";
import { base, imagePath, imagesPath, nameOf, type Image } from "./image.ts";
import { SignedUrl } from "./signed-url.tsx";

const one = `${base}/{image_id}`;

interface PanelProps {
  account: string;
  id: string;
  onClose: () => void;
}

/** One picture: its original, addresses, metadata, and signed addresses. */
export function ImagePanel({ account, id, onClose }: PanelProps) {
  const image = useGet<Image>(imagePath(account, id));
  const [isDeleting, setDeleting] = useState(false);
  const refusal = useRefusal()(`DELETE ${one}`);
  return (
    <Dialog title={image.data === undefined ? id : nameOf(image.data)} kind="side" onClose={onClose}>
      <Loaded of={image}>
        {(data) => (
          <div class="stack">
            {!data.draft && <Original account={account} image={data} />}
            <div class="row">
              {!data.draft && (
                <a
                  class="button"
                  href={href(`/${account}/images/playground?image=${encodeURIComponent(id)}`)}
                >
                  Transform
                </a>
              )}
              <Button icon="trash" kind="bad" refusal={refusal} onPress={() => setDeleting(true)}>
                Delete
              </Button>
            </div>
            <Facts
              facts={[
                ["Id", <Copyable text={id} />],
                ["Uploaded", <Time at={data.uploaded} />],
                ...data.variants.map(
                  (url) =>
                    [
                      `Variant ${url.split("/").at(-1)!}`,
                      <>
                        {!data.draft && !data.requireSignedURLs && <SizeOf url={url} />}
                        <Copyable text={url} />
                      </>,
                    ] as const,
                ),
              ]}
            />
            <Details key={JSON.stringify(data)} account={account} image={data} />
            {data.requireSignedURLs && <SignedUrl account={account} image={data} />}
          </div>
        )}
      </Loaded>
      {isDeleting && (
        <Confirm
          title={`Delete ${id}`}
          submit="Delete"
          call={{ op: `DELETE ${one}`, params: { account_id: account, image_id: id } }}
          done="The picture was deleted"
          invalidates={[`${imagesPath(account)}?`]}
          onDone={onClose}
          onClose={() => setDeleting(false)}
        >
          <p>The picture and all results that were made from it are deleted. Its addresses answer 404.</p>
        </Confirm>
      )}
    </Dialog>
  );
}

/** The pictures that the edge delivers at an address, by what browsers show: pixels, bytes and format. */
function SizeOf({ url }: { url: string }) {
  const { shown, fault } = useDelivered(url);
  const { shown: plain } = useDelivered(url, fromEdgePlain);
  const other =
    plain !== undefined && plain.type !== shown?.type
      ? `, or ${bytes(plain.size)} · ${plain.type} for browsers without it`
      : "";
  return <small>{fault ?? (shown === undefined ? "…" : `${sizeText(shown)}${other}`)}</small>;
}

const sizeText = ({ width, height, size, type }: Omit<Delivered, "url" | "ms">): string =>
  `${width} × ${height} · ${bytes(size)} · ${type}`;

/** The uploaded original. It is loaded over the API, so that private pictures are shown too. */
function Original({ account, image }: { account: string; image: Image }) {
  const path = `${imagePath(account, image.id)}/blob`;
  const blob = useAsync(path, async (signal) => {
    const response = await send(path, { signal });
    if (!response.ok) await answerOf(response);
    return response.blob();
  });
  const [url, setUrl] = useState<string | undefined>(undefined);
  const [pixels, setPixels] = useState<string | undefined>(undefined);
  useEffect(() => {
    if (blob.data === undefined) return;
    const made = URL.createObjectURL(blob.data);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob.data]);
  if (blob.failure) return <Failure failure={blob.failure} onRetry={blob.reload} />;
  return (
    <>
      <figure class="picture">
        {url && (
          <img
            src={url}
            alt={nameOf(image)}
            onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) =>
              setPixels(`${naturalWidth} × ${naturalHeight}`)
            }
          />
        )}
      </figure>
      {blob.data && (
        <div class="row">
          <span class="faint">
            {["Original", pixels, bytes(blob.data.size), blob.data.type].filter(Boolean).join(" · ")}
          </span>
          <Button icon="download" onPress={() => download(blob.data!, nameOf(image))}>
            Download
          </Button>
        </div>
      )}
    </>
  );
}

function Details({ account, image }: { account: string; image: Image }) {
  const { values, set, field } = useForm({
    metadata: JSON.stringify(image.meta, null, 2),
    creator: image.creator ?? "",
    isPrivate: image.requireSignedURLs,
  });
  const metadata = objectIn(values.metadata);
  return (
    <ActionForm
      call={{
        op: `PATCH ${one}`,
        params: { account_id: account, image_id: image.id },
        body: {
          metadata: metadata ?? {},
          creator: values.creator === "" ? null : values.creator,
          requireSignedURLs: values.isPrivate,
        },
      }}
      submit="Save"
      done="The picture was changed"
      refusal={metadata === undefined ? "the metadata is a JSON object" : undefined}
      invalidates={[imagesPath(account)]}
    >
      <TextField label="Metadata" {...field("metadata")} hint="A JSON object" rows={4} isMono />
      <TextField label="Creator" {...field("creator")} />
      <Switch
        label="Private"
        hint="Its addresses must be signed, except for variants that never need it."
        isOn={values.isPrivate}
        onChange={(isOn) => set("isPrivate", isOn)}
      />
    </ActionForm>
  );
}

/** Parses a JSON object; undefined if the text is not one. */
function objectIn(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text === "" ? "{}" : text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
