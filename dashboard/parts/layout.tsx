import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ago, timeOf } from "../core/format.ts";
import { href } from "../core/router.ts";
import { Button } from "./button.tsx";

interface PageProps {
  title: ComponentChildren;
  /** A line below the title. */
  about?: ComponentChildren;
  actions?: ComponentChildren;
  /** The list that this resource is in. */
  up?: { name: string; path: string };
  children: ComponentChildren;
}

/** A screen: its heading and its content. */
export const Page = ({ title, about, actions, up, children }: PageProps) => (
  <>
    <header class="page-head">
      <div>
        {up && (
          <p class="where">
            <a href={href(up.path)}>{up.name}</a>
          </p>
        )}
        <h1>{title}</h1>
        {about && <p class="about">{about}</p>}
      </div>
      {actions && <div class="row">{actions}</div>}
    </header>
    {children}
  </>
);

interface CardProps {
  title?: ComponentChildren;
  actions?: ComponentChildren;
  children?: ComponentChildren;
  class?: string;
}

/** A part of a screen with a frame. */
export const Card = ({ title, actions, children, class: given = "" }: CardProps) => (
  <section class={`card ${given}`}>
    {(title || actions) && (
      <header class="card-head">
        <h2>{title}</h2>
        {actions && <div class="row">{actions}</div>}
      </header>
    )}
    {children && <div class="card-body">{children}</div>}
  </section>
);

/** Parts of a form that are folded on narrow screens, where the result is below the form. */
export function Folded({ title, children }: { title: string; children: ComponentChildren }) {
  const [isWide] = useState(() => matchMedia("(min-width: 960px)").matches);
  return (
    <details class="folded" open={isWide}>
      <summary>{title}</summary>
      <div class="stack">{children}</div>
    </details>
  );
}

/** Names and values below each other. */
export const Facts = ({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }) => (
  <dl class="facts">
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

export type Tone = "ok" | "bad" | "warn" | "info" | "off" | "proxied";
const marks: Record<Tone, string> = { ok: "●", bad: "✕", warn: "▲", info: "◆", off: "○", proxied: "●" };

/** A state as a coloured mark and a word, because colour alone is not accessible. */
export const State = ({ tone, children }: { tone: Tone; children: ComponentChildren }) => (
  <span class={`state ${tone}`}>
    <span aria-hidden="true">{marks[tone]}</span>
    {children}
  </span>
);

/** A number with its name. */
export const Figure = ({
  name,
  value,
  note,
}: {
  name: string;
  value: ComponentChildren;
  note?: ComponentChildren;
}) => (
  <div class="figure">
    <span class="figure-name">{name}</span>
    <span class="figure-value">{value}</span>
    {note && <span class="figure-note">{note}</span>}
  </div>
);

/** A relative time, with the exact one on hover. */
export const Time = ({ at }: { at: string | number }) => {
  const iso = new Date(at).toISOString();
  return (
    <time dateTime={iso} title={`${timeOf(at)} (${iso})`}>
      {ago(at)}
    </time>
  );
};

interface CopyProps {
  text: string;
  label?: string;
  onCopied?: () => void;
}

/** A button that copies a text. */
export function Copy({ text, label = "Copy", onCopied }: CopyProps) {
  const [isDone, setDone] = useState(false);
  const copied = (): void => {
    setDone(true);
    onCopied?.();
  };
  useEffect(() => {
    if (!isDone) return;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [isDone]);
  return (
    <Button
      icon={isDone ? "check" : "copy"}
      kind="quiet"
      label={isDone ? "Copied" : label}
      onPress={() => void navigator.clipboard.writeText(text).then(copied)}
    />
  );
}

/** A text to copy, in one line. Secrets have a `name`, so that no label repeats them. */
export const Copyable = ({ text, name = text, onCopied }: Omit<CopyProps, "label"> & { name?: string }) => (
  <span class="copyable">
    <code>{text}</code>
    <Copy text={text} label={`Copy ${name}`} {...(onCopied && { onCopied })} />
  </span>
);

/** A notice above the content that concerns all of it. */
export const Notice = ({
  tone = "info",
  children,
  actions,
}: {
  tone?: Tone;
  children: ComponentChildren;
  actions?: ComponentChildren;
}) => (
  <div class={`notice ${tone}`} role="note">
    <span class="mark" aria-hidden="true">
      {marks[tone]}
    </span>
    <div>{children}</div>
    {actions && <div class="row">{actions}</div>}
  </div>
);
