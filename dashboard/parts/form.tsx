import { createContext, type ComponentChildren, type TargetedEvent } from "preact";
import { useContext, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { AsCode } from "../code/as-code.tsx";
import { Numbered } from "../code/numbered.tsx";
import { useAction } from "../core/action.ts";
import type { ApiFailure, Call } from "../core/client.ts";
import { useRefusal } from "../core/permissions.ts";
import { usePlaced, useUnplaced } from "../core/placed.ts";
import { hold, release, typed } from "../core/unsaved.ts";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";
import { Notice } from "./layout.tsx";

/** The values of a form. Typed values stay until the form is closed. */
export interface FormState<V> {
  values: V;
  set: <K extends keyof V>(name: K, value: V[K]) => void;
  replace: (values: V) => void;
  /** The properties of a field for the value. `name`: the field of the body, if it has another name. */
  field: <K extends keyof V & string>(
    value: K,
    name?: string,
  ) => { name: string; value: V[K]; onChange: (value: V[K]) => void };
}

export function useForm<V extends object>(initial: V): FormState<V> {
  const [values, setValues] = useState(initial);
  const set: FormState<V>["set"] = (name, value) => setValues((before) => ({ ...before, [name]: value }));
  return {
    values,
    set,
    replace: setValues,
    field: (key, name = key) => ({ name, value: values[key], onChange: (value) => set(key, value) }),
  };
}

/** The API's errors for the form that surrounds a field. */
const FormFailure = createContext<ApiFailure | undefined>(undefined);

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  children: (attributes: {
    id: string;
    "aria-describedby": string | undefined;
    "aria-invalid": "true" | undefined;
  }) => ComponentChildren;
  isNarrow?: boolean;
}

/** A label, a field, a hint, and the API's message about the field. */
export function Field({ label, hint, error, children, isNarrow }: FieldProps) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div class={`field ${error ? "wrong" : ""} ${isNarrow ? "narrow" : ""}`}>
      <label for={id}>{label}</label>
      {children({
        id,
        "aria-describedby": described === "" ? undefined : described,
        "aria-invalid": error ? "true" : undefined,
      })}
      {hint && (
        <p id={`${id}-hint`} class="hint">
          {hint}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} class="error">
          <Icon name="warning" />
          {error}
        </p>
      )}
    </div>
  );
}

type Attributes = Omit<FieldProps, "children"> & { name?: string };

function useErrorOf({ error, name }: Attributes): string | undefined {
  const failure = useContext(FormFailure);
  const isGiven = error !== undefined || name === undefined;
  const text = usePlaced(failure, isGiven ? undefined : failure?.of(name));
  // The field has the name and the value already.
  return error ?? text?.replace(/(?: for [\w.]+)? but received (?:"(?:\\.|[^"\\])*"|[^\s:]+)/, "");
}

interface TextProps extends Attributes {
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
  type?: "text" | "password" | "number" | "search" | "datetime-local" | "date";
  isRequired?: boolean;
  /** The step of a number or a time, as in HTML. */
  step?: number;
  isMono?: boolean;
  rows?: number;
  /** Whether the lines have numbers, and are not wrapped. */
  isFile?: boolean;
  autofocus?: boolean;
  isDisabled?: boolean;
}

/** A line of text, or several with `rows`. `name` is the field of the body that the API's messages are about. */
export const TextField = (props: TextProps) => (
  <Field label={props.label} hint={props.hint} error={useErrorOf(props)} isNarrow={props.isNarrow === true}>
    {(attributes) => {
      const common = {
        ...attributes,
        value: props.value,
        class: props.isMono ? "mono" : "",
        placeholder: props.placeholder,
        required: props.isRequired,
        spellcheck: false,
        autocomplete: "off" as const,
        autofocus: props.autofocus,
        disabled: props.isDisabled,
        onInput: (event: TargetedEvent<HTMLInputElement | HTMLTextAreaElement>) =>
          props.onChange(event.currentTarget.value),
      };
      // Preact's types have one member for each type of an input, and a union of types fits none.
      // oxlint-disable-next-line typescript/no-unnecessary-type-assertion
      const type = (props.type ?? "text") as "text";
      return props.rows === undefined ? (
        <input type={type} step={props.step} {...common} />
      ) : props.isFile === true ? (
        <Numbered text={props.value}>
          <textarea rows={props.rows} wrap="off" {...common} />
        </Numbered>
      ) : (
        <textarea rows={props.rows} {...common} />
      );
    }}
  </Field>
);

/** An option of a list of choices: its value, and its text if that is another. */
export function asOption(option: string | { value: string; label: string }) {
  const { value, label } = typeof option === "string" ? { value: option, label: option } : option;
  return (
    <option key={value} value={value}>
      {label}
    </option>
  );
}

interface SelectProps<K extends string> extends Attributes {
  value: K;
  onChange: (value: K) => void;
  options: readonly (K | { value: K; label: string })[];
  isDisabled?: boolean;
}

export const SelectField = <K extends string>(props: SelectProps<K>) => (
  <Field label={props.label} hint={props.hint} error={useErrorOf(props)} isNarrow={props.isNarrow === true}>
    {(attributes) => (
      <select
        {...attributes}
        value={props.value}
        disabled={props.isDisabled}
        onChange={(event) => props.onChange(event.currentTarget.value as K)}
      >
        {props.options.map(asOption)}
      </select>
    )}
  </Field>
);

interface SwitchProps {
  label: string;
  hint?: ComponentChildren;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
  refusal?: string | undefined;
}

/** On or off. Keys: Space. */
export function Switch({ label, hint, isOn, onChange, refusal }: SwitchProps) {
  const id = useId();
  return (
    <div class="switch-field">
      <button
        type="button"
        role="switch"
        aria-checked={isOn}
        aria-labelledby={id}
        aria-describedby={`${id}-hint`}
        aria-disabled={refusal === undefined ? undefined : "true"}
        class="switch"
        onClick={({ currentTarget }) => {
          if (refusal !== undefined) return;
          onChange(!isOn);
          currentTarget.dispatchEvent(new Event("input", { bubbles: true }));
        }}
      />
      <span>
        <span id={id} class="switch-label">
          {label}
        </span>
        <span id={`${id}-hint`} class="hint">
          {hint}
          {refusal && ` (${refusal})`}
        </span>
      </span>
    </div>
  );
}

export interface ActionFormProps<R> {
  /** The call for the current values. */
  call: Call;
  children: ComponentChildren | ((failure: ApiFailure | undefined) => ComponentChildren);
  submit: string;
  /** The message at the end. */
  done?: string;
  invalidates?: readonly string[];
  /** `etag` is the tag of the state that the answer shows. */
  onDone?: (result: R, etag?: string) => void;
  onCancel?: () => void;
  kind?: "primary" | "bad";
  /** The reason why the form cannot be sent yet. */
  refusal?: string | undefined;
  /** It stores nothing: its input may go without a question. */
  isQuestion?: boolean;
  /** The choices when another person has changed the resource meanwhile. */
  conflict?: Conflict;
}

export interface Conflict {
  /** Replaces the typed values by the stored ones. */
  onTakeTheirs: () => void;
  /** The call that overwrites the change; by default that of the form, made again from the stored values. */
  overwrite?: Call;
}

/**
 * A form that makes one call: fields, messages of the API, submit, cancel, and the call as code. Its input is not lost
 * without a question, except by Cancel. Keys: Ctrl+Enter submits.
 */
export function ActionForm<R>(props: ActionFormProps<R>) {
  const { call, children, submit, done, invalidates, onDone, onCancel, kind = "primary", conflict } = props;
  const action = useAction({ done, invalidates, keepsAtConflict: conflict !== undefined });
  const element = useRef<HTMLFormElement>(null);
  const refusal = useRefusal()(call.op) ?? props.refusal;
  useLayoutEffect(() => {
    const form = element.current;
    return () => release(form);
  }, []);
  const send = async (sent = call): Promise<void> => {
    if (refusal !== undefined || action.isBusy) return;
    const answer = await action.run<R>(sent);
    if (answer !== undefined) {
      release(element.current);
      onDone?.(answer.result, answer.etag);
    } else element.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  };
  const isConflict = conflict !== undefined && action.failure?.status === 412;
  return (
    <form
      ref={element}
      class="form"
      onInput={() => kind === "primary" && !props.isQuestion && hold(element.current!, typed)}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        element.current?.requestSubmit();
      }}
    >
      <div class="form-fields">
        <FormFailure.Provider value={action.failure}>
          {typeof children === "function" ? children(action.failure) : children}
        </FormFailure.Provider>
      </div>
      {isConflict && (
        <ConflictNotice
          onTakeTheirs={() => {
            action.clear();
            release(element.current);
            conflict.onTakeTheirs();
          }}
          onOverwrite={() => void send(conflict.overwrite)}
          onGoOn={() => action.clear()}
        />
      )}
      {!isConflict && action.failure !== undefined && <Unplaced failure={action.failure} />}
      <footer class="form-foot">
        <AsCode call={call} />
        <span class="spacer" />
        {onCancel && <Button onPress={onCancel}>Cancel</Button>}
        <Button type="submit" kind={kind} refusal={refusal} isBusy={action.isBusy}>
          {action.isBusy ? "Working …" : submit}
        </Button>
      </footer>
    </form>
  );
}

interface ConflictNoticeProps {
  onTakeTheirs: () => void;
  onOverwrite: () => void;
  onGoOn: () => void;
}

const ConflictNotice = ({ onTakeTheirs, onOverwrite, onGoOn }: ConflictNoticeProps) => (
  <div role="alert">
    <Notice
      tone="warn"
      actions={
        <>
          <Button onPress={onTakeTheirs}>Take theirs</Button>
          <Button onPress={onOverwrite}>Overwrite</Button>
          <Button onPress={onGoOn}>Go on editing</Button>
        </>
      }
    >
      Another person has changed this meanwhile. Nothing was saved.
    </Notice>
  </div>
);

/** The errors that no field shows. */
function Unplaced({ failure }: { failure: ApiFailure }) {
  const unplaced = useUnplaced(failure);
  const { requestId } = failure;
  if (unplaced.length === 0) return null;
  return (
    <div class="form-failure" role="alert">
      {unplaced.map(({ code, message }) => (
        <p key={message}>
          <Icon name="warning" /> {message} {code > 0 && <code>{code}</code>}
        </p>
      ))}
      {requestId && <p class="faint">Request {requestId}</p>}
    </div>
  );
}
