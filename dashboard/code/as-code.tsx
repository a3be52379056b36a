import { useState } from "preact/hooks";
import type { Call } from "../core/client.ts";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Copy } from "../parts/layout.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { Numbered } from "./numbered.tsx";
import { renderings } from "./render.ts";

/** Shows a call as curl, official client, wrangler and Terraform, before it is made. */
export function AsCode({ call }: { call: Call }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button icon="code" kind="quiet" class="as-code" onPress={() => setOpen(true)}>
        As code
      </Button>
      {isOpen && <CodeDialog call={call} onClose={() => setOpen(false)} />}
    </>
  );
}

export function CodeDialog({ call, onClose }: { call: Call; onClose: () => void }) {
  return (
    <Dialog title="As code" kind="wide" onClose={onClose}>
      <CodeTabs call={call} />
      <p class="hint">
        <code>CLOUDFLARE_BASE_URL</code> is <code>{`${location.origin}/client/v4`}</code>. The token comes
        from the environment.
      </p>
    </Dialog>
  );
}

/** The call in each tool that supports it. */
export function CodeTabs({ call }: { call: Call }) {
  const list = renderings(call);
  const [name, setName] = useState("curl");
  const current = list.find((each) => each.name === name) ?? list[0]!;
  return (
    <Tabs
      label="Tool"
      tabs={list.map((each) => ({ key: each.name, name: each.name }))}
      current={current.name}
      onChange={setName}
    >
      <Code text={current.text} />
    </Tabs>
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
