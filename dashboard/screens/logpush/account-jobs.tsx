import type { ScreenProps } from "../../shell/route.ts";
import { ofAccount } from "./job.ts";
import { Jobs } from "./jobs.tsx";

/** The jobs that upload runs of scripts and the audit log of the account. */
export default function AccountJobs({ account }: ScreenProps) {
  return <Jobs of={ofAccount(account)} />;
}
