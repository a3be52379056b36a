import { useEffect, useState } from "preact/hooks";
import { send } from "../../../core/client.ts";
import { useZone } from "../../../core/zone.ts";
import { Dialog } from "../../../parts/dialog.tsx";
import { ActionForm, TextField } from "../../../parts/form.tsx";
import { Bars } from "../../../parts/states.tsx";

const first = `export default {
  async fetch(request) {
    const response = await fetch(request);
    const changed = new Response(response.body, response);
    changed.headers.set("x-snippet", "hello");
    return changed;
  },
};
`;

/** The code of a snippet. A stored one has one or more modules in a form; the main one is edited. */
export function SnippetPanel({ name, onClose }: { name: string | undefined; onClose: () => void }) {
  const zone = useZone();
  const [newName, setNewName] = useState("");
  const [code, setCode] = useState<string | undefined>(name === undefined ? first : undefined);
  useEffect(() => {
    if (name !== undefined) void contentOf(zone.id, name).then(setCode, () => setCode(""));
  }, [name]);
  const body = new FormData();
  body.set("metadata", JSON.stringify({ main_module: "main.js" }));
  body.set("main.js", new File([code ?? ""], "main.js", { type: "application/javascript+module" }));
  return (
    <Dialog title={name ?? "Write a snippet"} kind="side" onClose={onClose}>
      {code === undefined ? (
        <Bars />
      ) : (
        <ActionForm
          call={{
            op: "PUT /zones/{zone_id}/snippets/{snippet_name}",
            params: { zone_id: zone.id, snippet_name: name ?? newName },
            body,
          }}
          submit="Save"
          done="The snippet was saved"
          refusal={(name ?? newName) === "" ? "give it a name" : undefined}
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
              <TextField label="main.js" value={code} onChange={setCode} rows={24} isMono />
            </>
          )}
        </ActionForm>
      )}
    </Dialog>
  );
}

/** The first module of a stored snippet. */
async function contentOf(zoneId: string, name: string): Promise<string> {
  const response = await send(`/zones/${zoneId}/snippets/${encodeURIComponent(name)}/content`);
  if (!(response.headers.get("content-type") ?? "").startsWith("multipart/")) return response.text();
  const form = await response.formData();
  const [first] = [...form.values()];
  return first === undefined || typeof first === "string" ? (first ?? "") : first.text();
}
