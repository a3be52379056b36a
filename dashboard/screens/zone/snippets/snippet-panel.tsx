import { useState } from "preact/hooks";
import { onlyAt } from "../../../core/client.ts";
import { plural } from "../../../core/format.ts";
import { useZone } from "../../../core/zone.ts";
import { Dialog } from "../../../parts/dialog.tsx";
import { ActionForm, TextField } from "../../../parts/form.tsx";
import { Loaded } from "../../../parts/states.tsx";
import { uploadOf, useCode, type Code } from "../../scripts/modules.ts";

const first = `export default {
  async fetch(request) {
    const response = await fetch(request);
    const changed = new Response(response.body, response);
    changed.headers.set("x-snippet", "hello");
    return changed;
  },
};
`;
const file = new File([first], "main.js", { type: "application/javascript+module" });
const template: Code = {
  main: file.name,
  modules: [{ name: file.name, file, text: first }],
  etag: undefined,
};

interface SnippetPanelProps {
  /** Undefined for a new one. */
  name: string | undefined;
  names: readonly string[];
  onClose: () => void;
}

/** The code of a snippet. */
export function SnippetPanel({ name, names, onClose }: SnippetPanelProps) {
  const zone = useZone();
  const path = `/zones/${zone.id}/snippets/${encodeURIComponent(name ?? "")}/content`;
  const stored = useCode(name === undefined ? undefined : path);
  return (
    <Dialog title={name ?? "Write a snippet"} kind="side" onClose={onClose}>
      <Loaded of={name === undefined ? { ...stored, data: template } : stored}>
        {(code) => (
          <Editor
            key={stored.at}
            name={name}
            names={names}
            code={code}
            onTakeTheirs={stored.reload}
            onClose={onClose}
          />
        )}
      </Loaded>
    </Dialog>
  );
}

interface EditorProps extends SnippetPanelProps {
  code: Code;
  onTakeTheirs: () => void;
}

/** The main module as text. The others are sent as they were. */
function Editor({ name, names, code, onTakeTheirs, onClose }: EditorProps) {
  const zone = useZone();
  const [newName, setNewName] = useState("");
  const [text, setText] = useState(code.modules.find((module) => module.name === code.main)?.text ?? "");
  const others = code.modules.length - 1;
  const overwrite = {
    op: "PUT /zones/{zone_id}/snippets/{snippet_name}",
    params: { zone_id: zone.id, snippet_name: name ?? newName },
    body: uploadOf(code, { [code.main]: text }),
  };
  const taken = names.includes(newName) ? "another snippet has this name" : undefined;
  const unnamed = newName === "" ? "give it a name" : taken;
  return (
    <ActionForm
      call={onlyAt(code.etag, overwrite)}
      conflict={{ onTakeTheirs, overwrite }}
      submit="Save"
      done="The snippet was saved"
      refusal={name === undefined ? unnamed : undefined}
      invalidates={[`/zones/${zone.id}/snippets`]}
      onCancel={onClose}
      onDone={onClose}
    >
      {() => (
        <>
          {name === undefined && (
            <TextField
              label="Name"
              value={newName}
              onChange={setNewName}
              hint="Letters, digits and _"
              autofocus
              isMono
            />
          )}
          <TextField
            label={code.main}
            value={text}
            onChange={setText}
            rows={24}
            isMono
            isFile
            hint={others === 0 ? undefined : `${plural(others, "other module")} of it stay as they are.`}
          />
        </>
      )}
    </ActionForm>
  );
}
