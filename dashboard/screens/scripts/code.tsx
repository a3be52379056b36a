import { useState } from "preact/hooks";
import { Code as CodeText } from "../../code/as-code.tsx";
import { bytes, plural } from "../../core/format.ts";
import { onlyAt } from "../../core/client.ts";
import { useRefusal } from "../../core/permissions.ts";
import { useSearch } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { ActionForm, SelectField, TextField } from "../../parts/form.tsx";
import { Notice } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import { formOf, refusalOf, type FolderCode } from "./folder.ts";
import { FolderField } from "./folder-field.tsx";
import { uploadOf, useCode, type Code } from "./modules.ts";
import { Preview } from "./preview.tsx";
import { one, shortId, type ScriptPlace } from "./script.ts";

interface TabProps {
  place: ScriptPlace;
}

/** The modules of a version. Those of the newest one can be edited as text. */
export function CodeTab({ place }: TabProps) {
  const [version, setVersion] = useSearch("version");
  const code = useCode(place.code, version);
  const [isReplacing, setReplacing] = useState(false);
  const refusal = useRefusal()(`PUT ${place.one}/content`);
  return (
    <div class="stack">
      {version !== "" && (
        <Notice actions={<Button onPress={() => setVersion("")}>The code that runs now</Button>}>
          This is the code of version <code>{shortId(version)}</code>. It is read only.
        </Notice>
      )}
      {version === "" && (
        <div class="row">
          <span class="spacer" />
          <Button icon="upload" refusal={refusal} onPress={() => setReplacing(true)}>
            Replace with a folder
          </Button>
        </div>
      )}
      <Loaded of={code} rows={10}>
        {(data) => (
          <Editor
            key={`${version} ${code.at}`}
            place={place}
            code={data}
            isReadOnly={version !== ""}
            onDone={code.reload}
          />
        )}
      </Loaded>
      {isReplacing && code.data && (
        <Replace
          place={place}
          etag={code.data.etag}
          onDone={code.reload}
          onClose={() => setReplacing(false)}
        />
      )}
    </div>
  );
}

interface ReplaceProps extends TabProps {
  etag: string | undefined;
  onDone: () => void;
  onClose: () => void;
}

/** Uploads the modules of a folder in place of all modules. */
function Replace({ place, etag, onDone, onClose }: ReplaceProps) {
  const [folder, setFolder] = useState<FolderCode>();
  const body = formOf({ main_module: folder?.main ?? "" }, folder?.modules ?? []);
  const overwrite = { op: `PUT ${place.one}/content`, params: place.params, body };
  const takeTheirs = (): void => {
    onClose();
    onDone();
  };
  return (
    <FormDialog
      title={`Replace the code of ${place.name}`}
      call={onlyAt(etag, overwrite)}
      conflict={{ onTakeTheirs: takeTheirs, overwrite }}
      submit="Upload and deploy"
      done="The code was uploaded, and runs"
      refusal={refusalOf(folder)}
      invalidates={[place.path, place.list]}
      onClose={onClose}
      onDone={onDone}
    >
      {() => (
        <>
          <FolderField value={folder} onChange={setFolder} />
          <p class="hint">Settings and bindings stay as they are. The earlier code stays as a version.</p>
        </>
      )}
    </FormDialog>
  );
}

interface EditorProps extends TabProps {
  code: Code;
  isReadOnly: boolean;
  onDone: () => void;
}

function Editor({ place, code, isReadOnly, onDone }: EditorProps) {
  const first = code.modules.find((module) => module.name === code.main) ?? code.modules[0];
  const [chosen, setChosen] = useState(first?.name ?? "");
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const shown = code.modules.find((module) => module.name === chosen);
  const text = texts[chosen] ?? shown?.text;
  const changed = Object.keys(texts).filter(
    (each) => texts[each] !== code.modules.find((module) => module.name === each)?.text,
  );
  const choice = code.modules.length > 1 && (
    <SelectField
      label="Module"
      value={chosen}
      onChange={setChosen}
      options={code.modules.map((module) => ({
        value: module.name,
        label: `${module.name}${module.name === code.main ? " (main)" : ""}${changed.includes(module.name) ? " · changed" : ""}`,
      }))}
    />
  );
  const binary = shown !== undefined && text === undefined && (
    <Notice>
      {shown.name} is not text: {bytes(shown.file.size)} of {shown.file.type}.
    </Notice>
  );
  if (isReadOnly)
    return (
      <>
        {choice}
        {binary}
        {text !== undefined && <CodeText text={text} label={chosen} isFile />}
      </>
    );
  const overwrite = { op: `PUT ${place.one}/content`, params: place.params, body: uploadOf(code, texts) };
  return (
    <>
      {/* Outside of the form, whose input is held until it is saved. */}
      {choice}
      <ActionForm
        call={onlyAt(code.etag, overwrite)}
        conflict={{ onTakeTheirs: onDone, overwrite }}
        submit="Upload and deploy"
        done="The code was uploaded, and runs"
        refusal={changed.length === 0 ? "nothing is changed" : undefined}
        invalidates={[place.path, place.list]}
        onDone={onDone}
      >
        {() => (
          <>
            {binary}
            {text !== undefined && (
              <TextField
                label={chosen}
                value={text}
                onChange={(value) => setTexts({ ...texts, [chosen]: value })}
                rows={26}
                isMono
                isFile
                hint={
                  changed.length === 0
                    ? "Settings and bindings stay as they are."
                    : `${plural(changed.length, "module")} changed. Settings and bindings stay as they are.`
                }
              />
            )}
          </>
        )}
      </ActionForm>
      {place.one === one && <Preview place={place} code={code} texts={texts} />}
    </>
  );
}
