/** An API token as the API shows it; the fields that the console uses. */
export interface Token {
  id: string;
  name: string;
  status: "active" | "disabled" | "expired";
  issued_on: string;
  last_used_on: string | null;
  expires_on?: string;
  policies: {
    effect: "allow" | "deny";
    resources: Record<string, unknown>;
    permission_groups: { name: string }[];
  }[];
}

/** The owner of tokens: the user of the session, or an account. */
export type Owner = "user" | "account";
/** The operations on the tokens of an owner. */
export const tokensOf = (owner: Owner, account: string) => ({
  op: owner === "user" ? "/user/tokens" : "/accounts/{account_id}/tokens",
  path: owner === "user" ? "/user/tokens" : `/accounts/${account}/tokens`,
  params: (owner === "user" ? {} : { account_id: account }) as Record<string, string>,
});
