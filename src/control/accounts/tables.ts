import type { Flag, Immutable } from "../../platform/storage/columns.ts";

export interface AccountsTable {
  id: Immutable<string>;
  name: string;
  type: string;
  settings: string;
  has_billing: Flag;
  created_on: Immutable<number>;
}

export interface UsersTable {
  id: Immutable<string>;
  email: string;
  first_name: string | null;
  last_name: string | null;
  telephone: string | null;
  country: string | null;
  zipcode: string | null;
  api_key_hash: string | null;
  /** The user was created by an accepted invitation, not by the configuration. */
  invited: Immutable<Flag>;
  created_on: Immutable<number>;
  modified_on: number;
}

export interface MembershipsTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  user_id: Immutable<string>;
  status: string;
  roles: string;
  created_on: Immutable<number>;
}

/** Invitations to accounts, with the hash of their secret. */
export interface InvitationsTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  email: Immutable<string>;
  roles: string;
  status: "pending" | "rejected";
  secret_hash: Immutable<string>;
  invited_by: Immutable<string | null>;
  invited_on: Immutable<number>;
  expires_on: Immutable<number>;
}
