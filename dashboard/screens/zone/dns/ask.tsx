import { useState } from "preact/hooks";
import { Dialog } from "../../../parts/dialog.tsx";
import { Notice } from "../../../parts/layout.tsx";

export function AskPanel({ onClose }: { onClose: () => void }) {
  useState(0);
  return (
    <Dialog title="Ask the name server" kind="side" onClose={onClose}>
      <Notice>…</Notice>
    </Dialog>
  );
}
