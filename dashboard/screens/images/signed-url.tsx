import { useEffect, useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { useRefusal } from "../../core/permissions.ts";
import { SelectField, TextField, useForm } from "../../parts/form.tsx";
import { Card, Copyable, Notice, Time } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import { base, imagesPath, signed, type Image, type SigningKey } from "./image.ts";

/** The keys of the account, unless the person may not see them. */
export function useKeys(account: string, isNeeded = true) {
  const refusal = useRefusal()(`GET ${base}/keys`);
  const path = `${imagesPath(account)}/keys`;
  const keys = useGet<{ keys: SigningKey[] }>(refusal === undefined && isNeeded ? path : undefined);
  return { refusal, keys };
}

/** An address, and when it ends, in seconds since 1970. */
export interface SignedAddress {
  url: string;
  expires: number;
}

/** Signs an address that is valid for some minutes from now. */
export async function signedFor(url: string, key: string, minutes: number): Promise<SignedAddress> {
  const expires = Math.floor(Date.now() / 1000) + Math.max(1, minutes || 0) * 60;
  return { url: await signed(url, key, expires), expires };
}

/** The end of a signed address. */
export const EndOf = ({ expires }: SignedAddress) => (
  <p class="hint">
    It ends <Time at={expires * 1000} />, or when the key is deleted.
  </p>
);

/** Makes an address of a private picture that is valid for a while. The key stays in this page. */
export function SignedUrl({ account, image }: { account: string; image: Image }) {
  const { refusal, keys } = useKeys(account);
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
  const [made, setMade] = useState<SignedAddress | undefined>(undefined);
  const key = keys.find(({ name }) => name === values.key)?.value;
  useEffect(() => {
    let isCurrent = true;
    if (key !== undefined)
      void signedFor(values.url, key, Number(values.minutes)).then(
        (address) => isCurrent && setMade(address),
      );
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
          <EndOf {...made} />
        </>
      )}
    </>
  );
}
