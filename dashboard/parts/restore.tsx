import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Call } from "../core/client.ts";
import { exactTimeOf, timeZone } from "../core/format.ts";
import { useRefusal } from "../core/permissions.ts";
import { Button } from "./button.tsx";
import { Confirm } from "./confirm.tsx";
import { TextField, useForm } from "./form.tsx";
import { Copyable, Notice } from "./layout.tsx";

/** A state to go back to. */
export type Moment = { bookmark: string } | { timestamp: string };

interface RestoreProps {
  /** The subject, such as "database". */
  noun: string;
  /** Typed to confirm. */
  name: string;
  callOf: (moment: Moment) => Call;
  invalidates?: readonly string[];
  onRestored?: () => void;
  /** Other controls that choose a moment. */
  children?: (ask: (moment: Moment) => void) => ComponentChildren;
}

/** Now, as a field for a time has it: a person changes parts of it, and types no seconds. */
function localNow(): string {
  const now = new Date();
  return new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** The states before the restores of this page, by their subject: they outlive a change of the tab. */
const undos = new Map<string, string>();

/** Restores the state of a time or a bookmark, and offers to undo it. */
export function Restore({ noun, name, callOf, invalidates = [], onRestored, children }: RestoreProps) {
  const { values, field } = useForm({ time: localNow(), bookmark: "" });
  const [asked, setAsked] = useState<Moment | undefined>(undefined);
  const subject = JSON.stringify(callOf({ bookmark: "" }).params);
  const [undo, setUndo] = useState(undos.get(subject));
  const bookmark = values.bookmark.trim();
  const time = Date.parse(values.time);
  const moment: Moment | undefined =
    bookmark !== ""
      ? { bookmark }
      : Number.isNaN(time)
        ? undefined
        : { timestamp: new Date(time).toISOString() };
  const refusal = useRefusal()(callOf({ bookmark }).op);
  return (
    <div class="stack">
      {undo !== undefined && (
        <Notice tone="ok" actions={<Button onPress={() => setAsked({ bookmark: undo })}>Undo</Button>}>
          The {noun} was restored. The state before is the bookmark <Copyable text={undo} />
        </Notice>
      )}
      <div class="form-row">
        <TextField
          label="A time"
          type="datetime-local"
          step={1}
          {...field("time")}
          hint={`In the time zone of this browser, ${timeZone}`}
        />
        <TextField label="Or a bookmark" {...field("bookmark")} isMono />
        <div class="field-action">
          <Button
            refusal={refusal ?? (moment === undefined ? "give it a time or a bookmark" : undefined)}
            onPress={() => setAsked(moment)}
          >
            Restore this state
          </Button>
        </div>
      </div>
      {children?.(setAsked)}
      {asked !== undefined && (
        <Confirm<{ previous_bookmark: string }>
          title={`Restore ${name}`}
          submit="Restore"
          typed={name}
          call={callOf(asked)}
          done={`The ${noun} was restored`}
          invalidates={invalidates}
          onDone={({ previous_bookmark }) => {
            undos.set(subject, previous_bookmark);
            setUndo(previous_bookmark);
            onRestored?.();
          }}
          onClose={() => setAsked(undefined)}
        >
          <p>
            The {noun} gets the state of{" "}
            {"bookmark" in asked ? (
              <code>{asked.bookmark}</code>
            ) : (
              <time dateTime={asked.timestamp}>{exactTimeOf(asked.timestamp)}</time>
            )}
            . Later writes are gone from it, and work in progress fails. The bookmark of the present state
            undoes it.
          </p>
        </Confirm>
      )}
    </div>
  );
}
