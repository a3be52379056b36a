import { href } from "../../core/router.ts";
import { Page } from "../../parts/layout.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { LiveLog } from "./live-log.tsx";

/** The runs of all scripts of the account and of its customers. */
export default function Logs({ account }: ScreenProps) {
  return (
    <Page
      title="Live logs"
      about={
        <>
          The runs of all scripts and customers, on all nodes. Each{" "}
          <a href={href(`/${account}/scripts`)}>script</a> has its own in a tab.
        </>
      }
    >
      <LiveLog op="POST /accounts/{account_id}/workers/tails" params={{ account_id: account }} isOfMany />
    </Page>
  );
}
