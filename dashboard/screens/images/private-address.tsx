import { useEffect, useState } from "preact/hooks";
import { SelectField, TextField } from "../../parts/form.tsx";
import { Card, Copyable, Notice } from "../../parts/layout.tsx";
import { EndOf, signedFor, useKeys, type SignedAddress } from "./signed-url.tsx";

/** The address under which a result is delivered. */
export interface PrivateAddressState {
  /** Undefined until a needed signature is there. */
  url: string | undefined;
  /** Signs another address, if that is needed. */
  sign: (url: string) => Promise<string>;
  signed: SignedAddress | undefined;
  /** Why nothing can be signed. */
  refusal: string | undefined;
  keyNames: readonly string[];
  key: string;
  setKey: (name: string) => void;
  minutes: string;
  setMinutes: (minutes: string) => void;
}

/** Signs an address, if it must be signed, with a key of the account. */
export function usePrivateAddress(account: string, isSigned: boolean, url: string): PrivateAddressState {
  const { refusal, keys } = useKeys(account, isSigned);
  const list = keys.data?.keys ?? [];
  const [name, setKey] = useState("");
  const [minutes, setMinutes] = useState("60");
  const [signed, setSigned] = useState<(SignedAddress & { of: string }) | undefined>(undefined);
  const key = list.find((each) => each.name === name) ?? list[0];
  const value = key?.value;
  useEffect(() => {
    if (!isSigned || value === undefined) return;
    let isCurrent = true;
    void signedFor(url, value, Number(minutes)).then((made) => isCurrent && setSigned({ ...made, of: url }));
    return () => {
      isCurrent = false;
    };
  }, [isSigned, url, value, minutes]);
  const current = isSigned && signed?.of === url ? signed : undefined;
  return {
    url: isSigned ? current?.url : url,
    sign: async (other) =>
      !isSigned || value === undefined ? other : (await signedFor(other, value, Number(minutes))).url,
    signed: current,
    refusal: refusal ?? (keys.data !== undefined && list.length === 0 ? "needs a key" : undefined),
    keyNames: list.map((each) => each.name),
    key: key?.name ?? "",
    setKey,
    minutes,
    setMinutes,
  };
}

/** The signed address of a private picture, with its key and its end. */
export const PrivateAddress = ({ address }: { address: PrivateAddressState }) =>
  address.refusal !== undefined ? (
    <Notice tone="warn">The picture is private. A signed address {address.refusal}.</Notice>
  ) : (
    <Card title="Signed address">
      <div class="form-row">
        <SelectField label="Key" value={address.key} onChange={address.setKey} options={address.keyNames} />
        <TextField label="Minutes" type="number" value={address.minutes} onChange={address.setMinutes} />
      </div>
      {address.signed && (
        <>
          <Copyable text={address.signed.url} />
          <EndOf {...address.signed} />
        </>
      )}
    </Card>
  );
