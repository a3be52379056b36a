import { useRef, useState } from "preact/hooks";
import { signIn } from "../core/session.ts";
import { Button } from "../parts/button.tsx";
import { TextField } from "../parts/form.tsx";
import { Notice } from "../parts/layout.tsx";
import { Brand } from "./brand.tsx";

/** Asks for an API token. The server responds with a session cookie that page scripts cannot read (HttpOnly). */
export function SignIn({ refusal }: { refusal: string | undefined }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState(refusal);
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const shown = error ?? refusal;
  const send = async (): Promise<void> => {
    if (token.trim() === "" || isBusy) return;
    setBusy(true);
    try {
      await signIn({ token: token.trim() });
      setToken("");
    } catch (failure) {
      setError((failure as Error).message);
      form.current?.querySelector("input")?.focus();
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <Brand />
        <h1>Sign in</h1>
        {window.isSecureContext ? null : (
          <Notice tone="bad">
            This page is not loaded over TLS. A token would cross the network in plain text, so sign-in is
            refused.
          </Notice>
        )}
        <TextField
          label="API token"
          type="password"
          value={token}
          onChange={(value) => {
            setToken(value);
          }}
          error={shown}
          hint="The token that the first start printed, or one of the Tokens screen. It is not kept in this browser."
          autofocus
          isMono
        />
        <Button type="submit" kind="primary" isBusy={isBusy}>
          {isBusy ? "Signing in …" : "Sign in"}
        </Button>
      </form>
    </main>
  );
}
