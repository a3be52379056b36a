import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { FormDialog, type FormDialogProps } from "./form-dialog.tsx";
import { TextField } from "./form.tsx";

interface ConfirmProps<R> extends Omit<FormDialogProps<R>, "kind" | "refusal" | "size" | "children"> {
  /** Text that the person must type first, such as the name of the deleted resource. */
  typed?: string;
  children?: ComponentChildren;
}

/** Asks before a call that destroys something. */
export function Confirm<R = unknown>({ typed, children, ...form }: ConfirmProps<R>) {
  const [text, setText] = useState("");
  return (
    <FormDialog<R>
      {...form}
      kind="bad"
      refusal={typed !== undefined && text !== typed ? `type "${typed}" first` : undefined}
    >
      {children}
      {typed !== undefined && (
        <TextField label={`Type ${typed} to confirm`} value={text} onChange={setText} autofocus />
      )}
    </FormDialog>
  );
}
