import { useId, useState } from "preact/hooks";
import { bytes, plural } from "../../core/format.ts";
import { SelectField } from "../../parts/form.tsx";
import { droppedFiles } from "./dropped-files.ts";
import { chosenFiles, mainsOf, modulesOf, type FolderCode, type FolderFile } from "./folder.ts";

const shownMax = 12;

interface FolderFieldProps {
  value: FolderCode | undefined;
  onChange: (value: FolderCode | undefined) => void;
}

/** A folder or files, chosen or dropped. Keys: those of a file field. */
export function FolderField({ value, onChange }: FolderFieldProps) {
  const id = useId();
  const [isOver, setOver] = useState(false);
  const take = (files: readonly FolderFile[]): void => {
    if (files.length === 0) return;
    const found = modulesOf(files);
    onChange({ ...found, main: mainsOf(found.modules)[0] ?? "" });
  };
  return (
    <div class="stack close">
      <div
        class={`drop ${isOver ? "over" : ""}`}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          if (event.dataTransfer !== null) void droppedFiles(event.dataTransfer).then(take);
        }}
      >
        <label for={id}>A folder with the built script</label>
        <input
          id={id}
          type="file"
          multiple
          ref={(element) => {
            if (element) element.webkitdirectory = true;
          }}
          onChange={({ currentTarget }) => currentTarget.files && take(chosenFiles(currentTarget.files))}
        />
        <span class="hint">Choose it, or drop the folder or its files here.</span>
      </div>
      {value !== undefined && <Found value={value} onChange={onChange} />}
    </div>
  );
}

function Found({ value, onChange }: { value: FolderCode; onChange: FolderFieldProps["onChange"] }) {
  const { modules, skipped, main } = value;
  const mains = mainsOf(modules);
  const isTypeScript = skipped.some((path) => /\.[cm]?tsx?$/.test(path));
  return (
    <>
      {mains.length > 0 && (
        <SelectField
          label="Main module"
          value={main}
          onChange={(chosen) => onChange({ ...value, main: chosen })}
          options={mains}
        />
      )}
      <ul class="choices" aria-label="Modules">
        {modules.slice(0, shownMax).map(({ path, file }) => (
          <li key={path}>
            <code>{path}</code> <span class="faint">{`${file.type}, ${bytes(file.size)}`}</span>
          </li>
        ))}
        {modules.length > shownMax && <li>and {plural(modules.length - shownMax, "more module")}</li>}
        {modules.length === 0 && <li>No file in it is a module.</li>}
      </ul>
      {skipped.length > 0 && (
        <p class="hint">
          {plural(skipped.length, "file")} left out: {skipped.slice(0, 3).join(", ")}
          {skipped.length > 3 && " …"}.
          {isTypeScript &&
            " TypeScript is not compiled here: choose the folder of the build, or use wrangler."}
        </p>
      )}
    </>
  );
}
