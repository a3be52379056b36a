import { ApiError } from "../api/errors.ts";
import type { InstallationOwner } from "../members/owner.ts";

/** The service that knows the owner of the installation. */
export interface OwnerServices {
  owner: { current: InstallationOwner | undefined };
}

/** Refuses other accounts, because customers must not see the installation's machines. */
export function checkOwner(accountId: string, { owner }: OwnerServices, subject: string): void {
  if (accountId !== owner.current?.account.id)
    throw new ApiError(403, 9109, `${subject} shown only to the account of the installation's owner`);
}
