import { useRef, useState } from "preact/hooks";
import { useAction } from "../../core/action.ts";
import { useRefusal } from "../../core/permissions.ts";
import { Button } from "../../parts/button.tsx";
import { toast } from "../../parts/toast.tsx";
import { base, imagesPath, type Image } from "./image.ts";

const op = `POST ${base}`;

/** A button that uploads pictures, one after the other. */
export function Upload({ account, onDone }: { account: string; onDone?: (image: Image) => void }) {
  const file = useRef<HTMLInputElement>(null);
  const [left, setLeft] = useState(0);
  const action = useAction({ invalidates: [imagesPath(account)], tellsFailure: true });
  const refusal = useRefusal()(op);
  const upload = async (files: readonly File[]): Promise<void> => {
    let last: Image | undefined;
    for (const [at, picked] of files.entries()) {
      setLeft(files.length - at);
      const body = new FormData();
      body.set("file", picked);
      last = (await action.run<Image>({ op, params: { account_id: account }, body }))?.result;
      if (last === undefined) break;
    }
    setLeft(0);
    if (last === undefined) return;
    toast(files.length === 1 ? "The picture was uploaded" : "The pictures were uploaded");
    onDone?.(last);
  };
  return (
    <>
      <input
        ref={file}
        type="file"
        multiple
        hidden
        accept="image/*"
        aria-label="Pictures"
        onChange={(event) => void upload([...(event.currentTarget.files ?? [])])}
      />
      <Button
        icon="upload"
        kind="primary"
        refusal={refusal}
        isBusy={left > 0}
        onPress={() => file.current?.click()}
      >
        {left === 0 ? "Upload pictures" : left === 1 ? "Uploading …" : `Uploading, ${left} left …`}
      </Button>
    </>
  );
}
