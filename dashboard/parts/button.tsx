import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icon.tsx";
import { Tooltip } from "./tooltip.tsx";

export interface ButtonProps {
  children?: ComponentChildren;
  icon?: IconName | undefined;
  kind?: "plain" | "primary" | "bad" | "quiet";
  type?: "button" | "submit";
  /** Text for screen readers, and shown on hover, if the button has only an icon. */
  label?: string;
  /** The reason why it is disabled now. It stays focusable, so that screen readers can read the reason. */
  refusal?: string | undefined;
  isBusy?: boolean;
  isPressed?: boolean;
  class?: string;
  id?: string;
  onPress?: (event: MouseEvent) => void;
  popovertarget?: string;
}

/** A button. With a `refusal` it is disabled and shows the reason. */
export function Button(props: ButtonProps) {
  const { children, icon, kind = "plain", type = "button", label, refusal, isBusy = false, onPress } = props;
  const isOff = refusal !== undefined || isBusy;
  const button = (
    <button
      type={type}
      id={props.id}
      class={`button ${kind} ${children === undefined ? "bare" : ""} ${props.class ?? ""}`}
      aria-label={label}
      aria-disabled={isOff ? "true" : undefined}
      aria-pressed={props.isPressed}
      aria-busy={isBusy ? "true" : undefined}
      popovertarget={isOff ? undefined : props.popovertarget}
      onClick={(event) => {
        if (isOff) event.preventDefault();
        else onPress?.(event);
      }}
    >
      {icon && <Icon name={icon} />}
      {children !== undefined && <span>{children}</span>}
    </button>
  );
  const hint = refusal ?? (children === undefined ? label : undefined);
  return hint === undefined ? button : <Tooltip text={hint}>{button}</Tooltip>;
}
