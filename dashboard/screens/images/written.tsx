import { useState } from "preact/hooks";
import { Code } from "../../code/as-code.tsx";
import { setSearch, useSearch } from "../../core/router.ts";
import { TextField } from "../../parts/form.tsx";
import { Copy } from "../../parts/layout.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import type { Delivered } from "./delivered.ts";
import { setOptions, useVariants } from "./option-fields.tsx";
import {
  inAddress,
  optionsInScript,
  optionsInVariant,
  scriptCode,
  variantJson,
  variantNames,
  type Options,
} from "./options.ts";

interface WrittenProps {
  account: string;
  base: string;
  /** The address of the result, without a signature. */
  url: string;
  options: Options;
  after: Delivered | undefined;
}

type Form = "url" | "variant" | "fetch" | "html";

/** The same transformation as an address, a variant and code. The controls follow their texts. */
export function Written({ account, base, url, options, after }: WrittenProps) {
  const [form, setForm] = useState<Form>("url");
  const [variant] = useSearch("variant");
  const variants = useVariants(account);
  const ofVariant = Object.entries(variants[variant]?.options ?? {});
  const current =
    variant === "" ? options : Object.fromEntries(ofVariant.map(([name, value]) => [name, String(value)]));
  const html = `<img src=${JSON.stringify(url)} width="${after?.width ?? ""}" height="${after?.height ?? ""}" alt="" loading="lazy">`;
  return (
    <Tabs
      label="As code"
      tabs={[
        { key: "url", name: "Address" },
        { key: "variant", name: "Variant" },
        { key: "fetch", name: "In a script" },
        { key: "html", name: "HTML" },
      ]}
      current={form}
      onChange={setForm}
    >
      {form === "html" ? (
        <Code text={html} />
      ) : form === "variant" ? (
        <Editable
          key={form}
          label="Options of a variant"
          text={variantJson(current)}
          rows={7}
          hint={hintOf(current)}
          take={(text) => setOptions(optionsInVariant(text))}
        />
      ) : form === "fetch" ? (
        <Editable
          key={form}
          label="Code in a script"
          text={scriptCode(`${base}public`, current)}
          rows={9}
          take={(text) => setOptions(optionsInScript(text))}
        />
      ) : (
        <Editable
          key={form}
          label="Address of the result"
          text={url}
          rows={2}
          take={(text) => {
            const found = inAddress(text, base);
            if ("options" in found) setOptions(found.options);
            else setSearch({ variant: knownVariant(found.variant, Object.keys(variants)) });
          }}
        />
      )}
    </Tabs>
  );
}

/** The name, unless there is no such variant. */
function knownVariant(name: string, known: readonly string[]): string {
  if (known.length > 0 && !known.includes(name))
    throw new Error(`“${name}” is no variant: expected ${known.join(", ")}, or options such as width=400`);
  return name;
}

/** The fields that a variant lacks, and those that it cannot have. */
function hintOf(options: Options): string {
  const isGiven = (name: string): boolean => (options[name] ?? "") !== "";
  const missing = ["width", "height"].filter((name) => !isGiven(name));
  const left = Object.keys(options).filter((name) => isGiven(name) && !variantNames.includes(name));
  return [
    missing.length > 0 && `A variant needs ${missing.join(" and ")} too.`,
    left.length > 0 && `A variant has no ${left.join(", ")}.`,
  ]
    .filter(Boolean)
    .join(" ");
}

interface EditableProps {
  label: string;
  text: string;
  rows: number;
  hint?: string;
  /** Applies the text. Throws what is wrong with it. */
  take: (text: string) => void;
}

/** A text that follows the controls until it is edited; then they follow it. */
function Editable({ label, text, rows, hint, take }: EditableProps) {
  const [typed, setTyped] = useState<{ text: string; fault?: string; before: string } | undefined>(undefined);
  // A text with a fault is dropped once the controls are used.
  const shown = typed?.fault === undefined || typed.before === text ? typed : undefined;
  const change = (next: string): void => {
    try {
      take(next);
      setTyped({ text: next, before: text });
    } catch (error) {
      setTyped({ text: next, fault: (error as Error).message, before: text });
    }
  };
  return (
    <div class="editable" onFocusOut={() => typed?.fault === undefined && setTyped(undefined)}>
      <TextField
        label={label}
        value={shown?.text ?? text}
        error={shown?.fault}
        hint={hint}
        rows={rows}
        isMono
        onChange={change}
      />
      <Copy text={text} label={`Copy ${label.toLowerCase()}`} />
    </div>
  );
}
