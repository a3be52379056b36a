import { useLayoutEffect, useState } from "preact/hooks";
import { asFailure, whenLimited, type ApiFailure } from "../core/client.ts";
import { clockOf } from "../core/format.ts";
import { offlineSince } from "../core/offline.ts";
import { navigate, useLocation } from "../core/router.ts";
import { readSession, session, signIn, type Session } from "../core/session.ts";
import { useStore } from "../core/store.ts";
import { Bars, Failure } from "../parts/states.tsx";
import { Toasts, toast } from "../parts/toast.tsx";
import { Frame } from "./frame.tsx";
import { Leaving } from "./leaving.tsx";
import { SignIn } from "./sign-in.tsx";

whenLimited((seconds) => toast(`The API asks to wait ${seconds} s. The call is repeated then.`, "info"));

const startCode = (): string | undefined => /^#start=([\w-]+)$/.exec(location.hash)?.[1];

/** Signs in with the single-use code of a start link, and removes it from the URL. */
async function begin(): Promise<string | undefined> {
  const code = startCode();
  let refusal: string | undefined;
  if (code !== undefined) {
    history.replaceState(null, "", location.pathname + location.search);
    refusal = await signIn({ code }).then(
      () => undefined,
      (error: unknown) => (error as Error).message,
    );
  }
  if (session.get() == null) session.set(await readSession());
  return refusal;
}

/** The whole console: sign-in, or the frame with a screen. */
export function App() {
  const opened = useStore(session);
  const [refusal, setRefusal] = useState<string | undefined>(undefined);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  useLayoutEffect(() => {
    const start = (): void => void begin().then(setRefusal, (error: unknown) => setFailure(asFailure(error)));
    start();
    // A start link that is opened where the console is open does not load the page.
    const opened = (): void => {
      if (startCode() !== undefined) start();
    };
    window.addEventListener("hashchange", opened);
    return () => window.removeEventListener("hashchange", opened);
  }, []);
  return (
    <>
      <OfflineLine />
      {failure !== undefined ? (
        <main class="alone">
          <Failure failure={failure} onRetry={() => location.reload()} />
        </main>
      ) : opened === undefined ? (
        <main class="alone">
          <Bars rows={3} />
        </main>
      ) : opened === null ? (
        <SignIn refusal={refusal} />
      ) : (
        <SignedIn opened={opened} />
      )}
      <Leaving />
      <Toasts />
    </>
  );
}

function SignedIn({ opened }: { opened: Session }) {
  const { path } = useLocation();
  const first = opened.accounts[0]?.id;
  const target = path === "/" ? `/${first}` : path === "/images" ? `/${first}/images` : undefined;
  useLayoutEffect(() => {
    if (target !== undefined && first !== undefined) navigate(target, { replace: true });
  }, [target, first]);
  if (first === undefined)
    return (
      <main class="alone">
        <p>This token has no account.</p>
      </main>
    );
  return target === undefined ? <Frame opened={opened} /> : null;
}

function OfflineLine() {
  const since = useStore(offlineSince);
  return since === undefined ? null : (
    <div class="offline" role="status">
      As of {clockOf(since)}. The server cannot be reached; reconnecting …
    </div>
  );
}
