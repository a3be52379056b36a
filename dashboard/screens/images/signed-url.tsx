import { useEffect, useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { useRefusal } from "../../core/permissions.ts";
import { SelectField, TextField, useForm } from "../../parts/form.tsx";
import { Card, Copyable, Notice, Time } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import { base, imagesPath, signed, type Image, type SigningKey } from "./image.ts";

/** Makes an address of a private picture that is valid for a while. The key stays in this page. */
export function SignedUrl({ account, image }: { account: string; image: Image }) {
  const refusal = useRefusal()(`GET ${base}/keys`);
  const keys = useGet<{ keys: SigningKey[] }>(
    refusal === undefined ? `${imagesPath(account)}/keys` : undefined,
  );
  if (refusal !== undefined) return <Notice tone="warn">A signed address {refusal}.</Notice>;
  return (
    <Card title="Signed address">
      <Loaded of={keys} rows={2}>
        {({ keys: list }) => <Signed image={image} keys={list} />}
      </Loaded>
    </Card>
  );
}

function Signed({ image, keys }: { image: Image; keys: readonly SigningKey[] }) {
  const { values, field } = useForm({ url: image.variants[0]!, key: keys[0]?.name ?? "", minutes: "60" });
  const [made, setMade] = useState<{ url: string; expires: number } | undefined>(undefined);
  const key = keys.find(({ name }) => name === values.key)?.value;
  useEffect(() => {
    let isCurrent = true;
    const expires = Math.floor(Date.now() / 1000) + Math.max(1, Number(values.minutes) || 0) * 60;
    if (key !== undefined)
      void signed(values.url, key, expires).then((url) => isCurrent && setMade({ url, expires }));
    return () => {
      isCurrent = false;
    };
  }, [values.url, key, values.minutes]);
  return (
    <>
      <div class="form-row">
        <SelectField
          label="Variant"
          {...field("url")}
          options={image.variants.map((value) => ({ value, label: value.split("/").at(-1)! }))}
        />
        <SelectField label="Key" {...field("key")} options={keys.map(({ name }) => name)} />
        <TextField label="Minutes" type="number" {...field("minutes")} />
      </div>
      {made && (
        <>
          <Copyable text={made.url} />
          <p class="hint">
            It ends <Time at={made.expires * 1000} />, or when the key is deleted.
          </p>
        </>
      )}
    </>
  );
}
