import { afterEach, expect, it, vi } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { loadConfig } from "../../platform/config/config.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { Actor } from "../access/actor.ts";
import { Tokens } from "../tokens/tokens.ts";
import { Accounts } from "../accounts/accounts.ts";
import { Members } from "./members.ts";
import { ensurePepper } from "../accounts/pepper.ts";
import { ensureOwner } from "./owner.ts";
import { ownerRole } from "../accounts/roles.ts";

describeStorage("members", (open) => {
  let storage: Storage;
  afterEach(async () => {
    vi.useRealTimers();
    await storage.close();
  });
  const config = (email: string) => loadConfig({ ephemeral: true, email }, {}, undefined).config;
  const day = 86_400_000;

  async function installation() {
    storage = await open();
    const accounts = new Accounts(storage);
    const tokens = new Tokens(storage, accounts, await ensurePepper(storage), { find: () => undefined });
    const { account, user } = await ensureOwner(config("owner@example.com"), storage, accounts, tokens);
    const unbound = { belongsTo: () => true, may: () => true };
    const owner = new Actor("key", user.id, user.id, undefined, unbound);
    const members = new Members(storage, accounts, tokens);
    const invite = async (email: string) =>
      members.invite(owner, account.id, { email, roles: [ownerRole.name] });
    return { accounts, tokens, members, account, invite };
  }

  it("an invitation expires after seven days, and its address can be invited again", async () => {
    const { members, account, invite } = await installation();
    const [late, early] = [await invite("late@example.com"), await invite("early@example.com")];
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 7 * day - 60_000 });
    await members.redeem(early.invitation.id, early.secret);
    vi.setSystemTime(Date.now() + 60_000);
    await expect(members.redeem(late.invitation.id, late.secret)).rejects.toMatchObject({
      kind: "members.noInvitation",
    });
    const again = await invite("late@example.com");
    await members.redeem(again.invitation.id, again.secret);
    expect(members.list(account.id)).toHaveLength(3);
  });

  it("an account has a limit on members and invitations", async () => {
    const { account, invite } = await installation();
    await storage.write(async (trx) => {
      const rows = Array.from({ length: 999 }, (_, i) => ({
        ...{
          id: `i${i}`,
          account_id: account.id,
          email: `i${i}@example.com`,
          roles: "[]",
          status: "pending" as const,
        },
        ...{ secret_hash: "", invited_by: null, invited_on: 0, expires_on: 0 },
      }));
      await trx.insertInto("invitations").values(rows).execute();
    });
    await expect(invite("one-more@example.com")).rejects.toMatchObject({ kind: "members.tooMany" });
  });

  it("an invited user cannot become the installation's owner", async () => {
    const { accounts, tokens, members, invite } = await installation();
    const { invitation, secret } = await invite("next@example.com");
    await members.redeem(invitation.id, secret);
    await expect(ensureOwner(config("next@example.com"), storage, accounts, tokens)).rejects.toThrow(
      "SELVEDGE_EMAIL",
    );
  });
});
