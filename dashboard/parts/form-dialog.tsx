import { Dialog, type DialogKind } from "./dialog.tsx";
import { ActionForm, type ActionFormProps } from "./form.tsx";

export interface FormDialogProps<R> extends Omit<ActionFormProps<R>, "onCancel"> {
  title: string;
  size?: DialogKind;
  onClose: () => void;
}

/** A dialog with a form that makes one call. It closes at the end of the call. */
export function FormDialog<R = unknown>({ title, size, onClose, onDone, ...form }: FormDialogProps<R>) {
  return (
    <Dialog title={title} onClose={onClose} {...(size !== undefined && { kind: size })}>
      <ActionForm<R>
        {...form}
        onCancel={onClose}
        onDone={(result) => {
          onClose();
          onDone?.(result);
        }}
      />
    </Dialog>
  );
}
