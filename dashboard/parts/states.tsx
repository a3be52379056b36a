import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Query } from "../core/cache.ts";
import type { ApiFailure } from "../core/client.ts";
import { Button } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

const barsAfterMs = 150;

/** Placeholder bars while rows load. They appear after a moment, so that a quick answer does not flicker. */
export function Bars({ rows = 6 }: { rows?: number }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), barsAfterMs);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class={`bars ${isShown ? "" : "waiting"}`} role="status">
      <span class="unseen">Loading</span>
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} class="bar" />
      ))}
    </div>
  );
}

interface EmptyProps {
  icon?: IconName;
  title: string;
  children?: ComponentChildren;
  actions?: ComponentChildren;
}

/** Shown for an empty list: one sentence, the action, and the same as a command. */
export const Empty = ({ icon = "info", title, children, actions }: EmptyProps) => (
  <div class="empty">
    <Icon name={icon} />
    <h2>{title}</h2>
    {children && <div class="empty-text">{children}</div>}
    {actions && <div class="row center">{actions}</div>}
  </div>
);

/** Shown for a refused call: the API's message, and a next step. */
export function Failure({ failure, onRetry }: { failure: ApiFailure; onRetry?: () => void }) {
  const isDenied = failure.status === 403;
  return (
    <div class={`failure ${isDenied ? "denied" : ""}`} role="alert">
      <Icon name={isDenied ? "lock" : "warning"} />
      <div>
        <strong>
          {isDenied
            ? "This token may not see this"
            : failure.status === 404
              ? "Not found"
              : "This could not be loaded"}
        </strong>
        {failure.errors.map(({ code, message }) => (
          <p key={`${code} ${message}`}>
            {message} {code > 0 && <code>{code}</code>}
          </p>
        ))}
        {failure.requestId && (
          <p class="faint">
            Request <code>{failure.requestId}</code>
          </p>
        )}
      </div>
      {onRetry && (
        <Button icon="refresh" onPress={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

interface LoadedProps<T> {
  of: Query<T>;
  /** Shown instead of an empty list. */
  empty?: ComponentChildren;
  /** Placeholder bars while nothing is loaded. */
  rows?: number;
  children: (data: T) => ComponentChildren;
}

/**
 * The states of a resource: loading, empty, failed, denied, or loaded. Loaded data stays while it is read again, and
 * when that fails, because a form in it may have input.
 */
export function Loaded<T>({
  of: { data, failure, isLoading, reload },
  empty,
  rows = 6,
  children,
}: LoadedProps<T>) {
  if (data === undefined)
    return failure !== undefined && !isLoading ? (
      <Failure failure={failure} onRetry={reload} />
    ) : (
      <Bars rows={rows} />
    );
  const isEmpty = empty !== undefined && Array.isArray(data) && data.length === 0;
  return (
    <>
      {failure !== undefined && failure.status > 0 && <Failure failure={failure} onRetry={reload} />}
      {isEmpty ? empty : children(data)}
    </>
  );
}
