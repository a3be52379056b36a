import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Call } from "../core/client.ts";
import { Dialog } from "./dialog.tsx";
import { ActionForm, TextField } from "./form.tsx";

interface ConfirmProps {
  title: string;
  call: Call;
  children?: ComponentChildren;
  submit: string;
  /** Text that has to be typed first, such as the name of what is deleted. */
  typed?: string;
  done?: string;
  invalidates?: readonly string[];
  onDone?: () => void;
  onClose: () => void;
}

/** Asks before a call that destroys something. */
export function Confirm({
  title,
  call,
  children,
  submit,
  typed,
  done,
  invalidates,
  onDone,
  onClose,
}: ConfirmProps) {
  const [text, setText] = useState("");
  return (
    <Dialog title={title} onClose={onClose}>
      <ActionForm
        call={call}
        submit={submit}
        kind="bad"
        {...(done !== undefined && { done })}
        {...(invalidates !== undefined && { invalidates })}
        refusal={typed !== undefined && text !== typed ? `type "${typed}" first` : undefined}
        onCancel={onClose}
        onDone={() => {
          onClose();
          onDone?.();
        }}
      >
        {() => (
          <>
            {children}
            {typed !== undefined && (
              <TextField label={`Type ${typed} to confirm`} value={text} onChange={setText} autofocus />
            )}
          </>
        )}
      </ActionForm>
    </Dialog>
  );
}
