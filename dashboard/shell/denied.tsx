import { permissionName } from "../core/permissions.ts";
import { Empty } from "../parts/states.tsx";

/** Shown in place of a screen: the permission that it needs. */
export const Denied = ({ needs }: { needs: string }) => (
  <Empty icon="lock" title={`This screen needs ${permissionName(needs)}`}>
    <p>
      The token of this session does not have this permission here. Sign in with one that has it, or add the
      permission on the Tokens screen.
    </p>
  </Empty>
);
