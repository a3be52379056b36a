import type { ComponentType } from "preact";
import { useState } from "preact/hooks";
import type { Call } from "../core/client.ts";
import { Button } from "../parts/button.tsx";
import { Copy } from "../parts/layout.tsx";
import { toast } from "../parts/toast.tsx";
import { Numbered } from "./numbered.tsx";

type Shown = ComponentType<{ call: Call; onClose: () => void }>;

/** Shows a call as curl, official client, wrangler and Terraform, before it is made. */
export function AsCode({ call }: { call: Call }) {
  const [dialog, setDialog] = useState<{ of: Shown } | undefined>(undefined);
  // The calls of all clients are loaded when a person asks for them.
  const open = (): void =>
    void import("./code-dialog.tsx").then(
      ({ CodeDialog }) => setDialog({ of: CodeDialog }),
      () => toast("The server cannot be reached", "bad"),
    );
  return (
    <>
      <Button icon="code" kind="quiet" class="as-code" onPress={open}>
        As code
      </Button>
      {dialog && <dialog.of call={call} onClose={() => setDialog(undefined)} />}
    </>
  );
}

interface CodeProps {
  text: string;
  label?: string;
  /** Whether its lines have numbers, as those of a file. */
  isFile?: boolean;
}

/** A piece of code with a copy button. */
export function Code({ text, label = "Code", isFile = false }: CodeProps) {
  const shown = (
    <pre tabIndex={0} role="region" aria-label={label}>
      <code>{text}</code>
    </pre>
  );
  return (
    <div class="code">
      {isFile ? <Numbered text={text}>{shown}</Numbered> : shown}
      <Copy text={text} />
    </div>
  );
}
