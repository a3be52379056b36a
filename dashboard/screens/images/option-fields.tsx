import { useGet } from "../../core/cache.ts";
import { setSearch, useLocation, useSearch } from "../../core/router.ts";
import { SelectField, TextField } from "../../parts/form.tsx";
import { Folded } from "../../parts/layout.tsx";
import { imagesPath, type Variant } from "./image.ts";
import { groups, optionNames, type Options, type PictureOption } from "./options.ts";

/** The chosen options, from the address bar. At first, a width. */
export function useOptions(): Options {
  const { query } = useLocation();
  const given = optionNames.filter((name) => query.has(name));
  if (given.length === 0) return query.has("plain") ? {} : { width: "600" };
  return Object.fromEntries(given.map((name) => [name, query.get(name)!]));
}

/** Writes options into the address bar, instead of all others and of a variant. */
export function setOptions(options: Options): void {
  const isPlain = Object.values(options).every((value) => value === "");
  setSearch({
    ...Object.fromEntries(optionNames.map((name) => [name, options[name] ?? ""])),
    variant: "",
    plain: isPlain ? "1" : "",
  });
}

/** The variants of an account, by their names. */
export const useVariants = (account: string): Record<string, Variant> =>
  useGet<{ variants: Record<string, Variant> }>(`${imagesPath(account)}/variants`).data?.variants ?? {};

/** A variant of the account, or options. */
export function Choice({ account }: { account: string }) {
  const [variant, setVariant] = useSearch("variant");
  const variants = Object.keys(useVariants(account));
  return (
    <>
      <SelectField
        label="Variant"
        value={variant}
        onChange={setVariant}
        options={[{ value: "", label: "None: the options below" }, ...new Set([...variants, variant])].filter(
          (each, index) => index === 0 || each !== "",
        )}
      />
      {variant === "" && (
        <Folded title="Options">
          <OptionFields />
        </Folded>
      )}
    </>
  );
}

function OptionFields() {
  const values = useOptions();
  return (
    <>
      {groups.map(({ title, options }) => (
        <fieldset key={title} class="option-group">
          <legend>{title}</legend>
          <div class="form-row">
            {options.map((option) => (
              <OptionField
                key={option.name}
                option={option}
                value={values[option.name] ?? ""}
                onChange={(value) => setOptions({ ...values, [option.name]: value })}
              />
            ))}
          </div>
        </fieldset>
      ))}
    </>
  );
}

interface OptionFieldProps {
  option: PictureOption;
  value: string;
  onChange: (value: string) => void;
}

const OptionField = ({ option, value, onChange }: OptionFieldProps) =>
  "values" in option ? (
    <SelectField
      label={option.name}
      value={value}
      onChange={onChange}
      options={[
        { value: "", label: "–" },
        ...[...new Set([...option.values, value])].filter((each) => each !== ""),
      ]}
    />
  ) : (
    <TextField label={option.name} value={value} placeholder={option.hint ?? ""} onChange={onChange} />
  );
