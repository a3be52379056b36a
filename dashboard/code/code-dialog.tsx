import { useState } from "preact/hooks";
import type { Call } from "../core/client.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { Code } from "./as-code.tsx";
import { renderings } from "./render.ts";

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
