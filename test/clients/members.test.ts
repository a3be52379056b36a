import type Cloudflare from "cloudflare";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { invitationOperations } from "../../src/control/members/api-invitations.ts";
import { memberOperations } from "../../src/control/members/api-members.ts";
import { membershipOperations } from "../../src/control/members/api-memberships.ts";
import { roles, type Role } from "../../src/control/accounts/roles.ts";
import { operations } from "../../src/capabilities.ts";
import { permissionGroups } from "../../src/control/access/permissions.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { ownerToken, startTestServer, type ApiResponse, type TestServer } from "../helpers/server.ts";

/** Members and roles: members have exactly the permissions of their roles. */
let server: TestServer;
let owner: Cloudflare;
let called: Set<string>;
let account_id: string;
let zone_id: string;

beforeAll(async () => {
  server = await startTestServer();
  account_id = server.ready.account_id;
  zone_id = await server.newZone("members.example");
  ({ client: owner, called } = recordingClient(server, operations));
});
afterAll(() => server.close(1000));

const idOf = (name: string): string => roles.find((role) => role.name === name)!.id;
const superAdministrator = roles[0]!.id;
let count = 0;
const newEmail = (): string => `person-${++count}@example.com`;

interface Invited {
  id: string;
  email: string;
  invitation: { url: string };
}
interface Accepted {
  id: string;
  user: { id: string; email: string };
  token: string;
}

async function post<T>(
  url: string,
  token?: string,
): Promise<{ status: number; result: T; errors: { code: number }[] }> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(url, { method: "POST", headers });
  const body = (await response.json()) as { result: T; errors: { code: number }[] };
  return { status: response.status, ...body };
}
const invite = async (role: string, email = newEmail(), account = account_id): Promise<Invited> => {
  const body = { account_id: account, email, roles: [role] };
  return (await owner.accounts.members.create(body)) as unknown as Invited;
};
/** Invites a new member to the account. */
async function join(role: string, email?: string, account?: string): Promise<Accepted> {
  const { invitation } = await invite(role, email, account);
  return (await post<Accepted>(invitation.url)).result;
}
const as = async (token: string, method: string, path: string, body?: unknown): Promise<ApiResponse> =>
  server.call(method, path, body, { authorization: `Bearer ${token}` });
const clientOf = (apiToken: string): Cloudflare =>
  recordingClient(server, operations, { apiToken, called }).client;

it("the official client invites, lists, changes and removes members", async () => {
  const listed = await Array.fromAsync(owner.accounts.roles.list({ account_id }));
  expect(listed.map(({ name }) => name)).toEqual(roles.map(({ name }) => name));
  expect(await owner.accounts.roles.get(superAdministrator, { account_id })).toEqual(listed[0]);
  const { id, email, invitation } = await invite(idOf("DNS"), "Somebody@Example.com");
  expect(email).toBe("somebody@example.com");
  expect(new URL(invitation.url).origin).toBe(new URL(server.ready.api).origin);
  const { members } = owner.accounts;
  expect(await members.get(id, { account_id })).toMatchObject({ email, status: "pending" });
  const { result } = await post<Accepted>(invitation.url);
  expect(result).toMatchObject({ id, user: { email } });
  expect(await members.get(id, { account_id })).toMatchObject({
    ...{ id, status: "accepted", user: { id: result.user.id, email }, roles: [{ name: "DNS" }] },
  });
  const found = await Array.fromAsync(members.list({ account_id, status: "accepted", order: "user.email" }));
  expect(found.map((member) => member.email)).toEqual(["owner@selvedge.localhost", email]);

  const person = clientOf(result.token);
  expect(await person.user.get()).toMatchObject({ id: result.user.id, email });
  const [membership] = await Array.fromAsync(person.memberships.list());
  expect(membership).toMatchObject({ id, status: "accepted", roles: ["DNS"], account: { id: account_id } });
  await person.dns.records.create({ zone_id, type: "A", name: "by-a-member", content: "192.0.2.1", ttl: 60 });
  await expect(person.zones.edit({ zone_id, paused: true })).rejects.toMatchObject({ status: 403 });

  const read = { id: idOf("Administrator Read Only") } as never;
  expect(await members.update(id, { account_id, roles: [read] })).toMatchObject({
    roles: [{ name: "Administrator Read Only" }],
  });
  expect(await Array.fromAsync(person.dns.records.list({ zone_id }))).toHaveLength(1);
  await expect(
    person.dns.records.create({ zone_id, type: "A", name: "b", content: "192.0.2.1", ttl: 60 }),
  ).rejects.toMatchObject({ status: 403 });

  expect(await members.delete(id, { account_id })).toEqual({ id });
  await expect(person.zones.get({ zone_id })).rejects.toMatchObject({ status: 403 });
  expect(await Array.fromAsync(person.memberships.list())).toEqual([]);
  expect(await person.user.get()).toMatchObject({ email });
});

describe.each(roles.map((role) => [role.name, role] as const))("%s", (_name, role: Role) => {
  it("has exactly its permissions", async () => {
    const { token, user } = await join(role.id);
    const found = await server.services.tokens.authenticate(token, "127.0.0.1");
    if (typeof found === "string") throw new Error(found);
    const other = (await server.call("POST", "/accounts", { name: role.name.slice(0, 50) })).body.result
      .id as string;
    for (const { key, scope } of permissionGroups) {
      if (scope === "user") {
        expect([key, found.actor.can(key, { userId: user.id })]).toEqual([key, true]);
        continue;
      }
      const at = (accountId: string) => (scope === "zone" ? { accountId, zoneId: zone_id } : { accountId });
      expect([key, found.actor.can(key, at(account_id))]).toEqual([key, role.permissions.has(key)]);
      expect([key, found.actor.can(key, at(other))]).toEqual([key, false]);
    }
    // The creator's role also limits tokens of the account.
    const resources = { [`com.cloudflare.api.account.${account_id}`]: "*" };
    const policies = (group: string) => [
      { effect: "allow", resources, permission_groups: [{ name: group }] },
    ];
    const path = `/accounts/${account_id}/tokens`;
    const made = await as(token, "POST", path, { name: "t", policies: policies("Account Settings Write") });
    expect(made.body.success).toBe(role.id === superAdministrator);
    const { status } = await as(token, "POST", `/accounts/${account_id}/members`, {
      ...{ email: newEmail(), roles: [idOf("Minimal Account Access")] },
    });
    expect(status).toBe(role.id === superAdministrator ? 200 : 403);
  });
});

describe("an invitation", () => {
  it("works once, with its secret, until it expires, and its user cannot create accounts", async () => {
    const { id, invitation, email } = await invite(superAdministrator);
    const wrong = [
      invitation.url.replace(/secret=.*/, `secret=${"x".repeat(40)}`),
      invitation.url.replace(id, "f".repeat(32)),
      invitation.url.replace(id, (await invite(superAdministrator)).id),
    ];
    for (const url of wrong) expect(await post(url)).toMatchObject({ status: 404, errors: [{ code: 1065 }] });
    const { result } = await post<Accepted>(invitation.url);
    expect(await post(invitation.url)).toMatchObject({ status: 404, errors: [{ code: 1065 }] });
    expect(await as(result.token, "GET", "/user")).toMatchObject({ body: { result: { email } } });
    expect((await as(result.token, "POST", "/accounts", { name: "mine" })).status).toBe(403);
    // A token of the user cannot either.
    const listed = JSON.stringify(
      (await server.call("GET", `/accounts/${account_id}/members?per_page=50`)).body,
    );
    expect(listed).not.toContain("secret");
  });

  it("is rejected for an invited address and for invalid input", async () => {
    const path = `/accounts/${account_id}/members`;
    const email = newEmail();
    await invite(idOf("DNS"), email);
    const create = async (body: object) => {
      const { status, body: answer } = await server.call("POST", path, body);
      return [status, answer.errors[0]?.code, answer.errors[0]?.source?.pointer];
    };
    expect(await create({ email: email.toUpperCase(), roles: [idOf("DNS")] })).toEqual([
      409,
      1060,
      undefined,
    ]);
    expect(await create({ email: "owner@selvedge.localhost", roles: [idOf("DNS")] })).toEqual([
      409,
      1060,
      undefined,
    ]);
    expect(await create({ email, roles: [] })).toEqual([400, 9207, "/body/roles"]);
    expect(await create({ email, roles: ["f".repeat(32)] })).toEqual([400, 9207, "/body/roles/0"]);
    expect(await create({ email: "nobody", roles: [idOf("DNS")] })).toEqual([400, 9207, "/body/email"]);
    const policies = [{ access: "allow", permission_groups: [], resource_groups: [] }];
    expect(await create({ email: newEmail(), policies, roles: [idOf("DNS")] })).toEqual([
      400,
      9207,
      "/body/policies",
    ]);
    const direct = await server.call("POST", path, {
      email: newEmail(),
      roles: [idOf("DNS")],
      status: "accepted",
    });
    expect(direct.body).toMatchObject({ result: { status: "pending" }, messages: [{}, {}] });
  });

  it("to a user's address requires both the secret and the user's credentials", async () => {
    const second = await owner.accounts.create({ name: "Second", type: "standard" });
    const email = newEmail();
    // The first person to use an address may not be the person that another account invited.
    const first = await join(idOf("Minimal Account Access"), email);
    const person = clientOf(first.token);
    const { id, invitation } = await invite(idOf("DNS"), email, second.id);
    expect(await post(invitation.url)).toMatchObject({ status: 409, errors: [{ code: 1066 }] });
    expect(await Array.fromAsync(person.user.invites.list())).toMatchObject([
      { id, status: "pending", organization_name: "Second", invited_by: "owner@selvedge.localhost" },
    ]);
    expect(await person.user.invites.get(id)).toMatchObject({ roles: ["DNS"] });
    for (const body of [{ status: "accepted" }, { status: "accepted", secret: "x" }] as const) {
      await expect(person.user.invites.edit(id, body)).rejects.toMatchObject({ errors: [{ code: 1065 }] });
      await expect(person.memberships.update(id, { account_id, ...body } as never)).rejects.toMatchObject({
        status: 400,
      });
    }
    const secret = new URL(invitation.url).searchParams.get("secret")!;
    const stranger = await join(idOf("DNS"));
    const answer = { status: "accepted" as const, secret };
    expect((await as(stranger.token, "PATCH", `/user/invites/${id}`, answer)).status).toBe(404);
    expect(await Array.fromAsync(person.user.organizations.list())).toHaveLength(2);
    expect(await person.user.organizations.get(second.id)).toMatchObject({ status: "invited" });
    expect((await as(first.token, "GET", `/accounts/${second.id}`)).status).toBe(403);
    expect(await person.user.invites.edit(id, answer)).toMatchObject({ status: "accepted" });
    expect((await as(first.token, "GET", `/accounts/${second.id}`)).status).toBe(200);
    expect(await person.memberships.get(id)).toMatchObject({ status: "accepted" });
    expect(await person.memberships.update(id, { status: "accepted" })).toMatchObject({ status: "accepted" });
    expect(await person.memberships.delete(id)).toEqual({ id });
    expect((await as(first.token, "GET", `/accounts/${second.id}`)).status).toBe(403);
  });

  it("can be repeated after a rejection, and the first secret stops working", async () => {
    const email = newEmail();
    const { token } = await join(idOf("DNS"), email);
    const second = await owner.accounts.create({ name: "Rejected", type: "standard" });
    const before = await invite(idOf("DNS"), email, second.id);
    const secret = new URL(before.invitation.url).searchParams.get("secret")!;
    expect((await as(token, "PUT", `/memberships/${before.id}`, { status: "rejected" })).status).toBe(200);
    const answer = { status: "accepted", secret };
    expect((await as(token, "PUT", `/memberships/${before.id}`, answer)).status).toBe(404);
    const after = await invite(idOf("DNS"), email, second.id);
    expect(after.id).not.toBe(before.id);
    for (const id of [before.id, after.id])
      expect((await as(token, "PUT", `/memberships/${id}`, answer)).status).toBe(404);
  });
});

describe("no caller grants or revokes more than it has", () => {
  /** A Super Administrator's token for the account's settings only. */
  async function narrow(more: object = {}): Promise<string> {
    const policies = [
      {
        effect: "allow",
        resources: { [`com.cloudflare.api.account.${account_id}`]: "*" },
        permission_groups: [{ name: "Account Settings Write" }],
      },
    ];
    const { body } = await server.call("POST", "/user/tokens", { name: "n", policies, ...more });
    return body.result.value as string;
  }
  const path = (): string => `/accounts/${account_id}/members`;

  it("not with a token that has less than its user", async () => {
    const token = await narrow();
    const member = await join(idOf("DNS"));
    const refused = { status: 403, body: { errors: [{ code: 1052 }] } };
    const body = (role: string): object => ({ email: newEmail(), roles: [role] });
    expect(await as(token, "POST", path(), body(idOf("DNS")))).toMatchObject(refused);
    const minimal = [{ id: idOf("Minimal Account Access") }];
    expect(await as(token, "PUT", `${path()}/${member.id}`, { roles: minimal })).toMatchObject(refused);
    expect(await as(token, "DELETE", `${path()}/${member.id}`)).toMatchObject(refused);
    const made = await as(token, "POST", path(), body(idOf("Minimal Account Access")));
    expect(made.status).toBe(200);
    expect(
      await as(token, "PUT", `${path()}/${made.body.result.id}`, { roles: [{ id: idOf("DNS") }] }),
    ).toMatchObject(refused);
    expect((await as(token, "DELETE", `${path()}/${made.body.result.id}`)).status).toBe(200);
  });

  it("not with a token limited in time or addresses", async () => {
    for (const more of [
      { expires_on: "2099-01-01T00:00:00Z" },
      { condition: { request_ip: { in: ["127.0.0.1"] } } },
    ]) {
      const body = { email: newEmail(), roles: [idOf("Minimal Account Access")] };
      expect(await as(await narrow(more), "POST", path(), body)).toMatchObject({ status: 403 });
    }
  });

  it("and an account keeps at least one Super Administrator", async () => {
    const { id: account } = await owner.accounts.create({ name: "Kept", type: "standard" });
    const members = await Array.fromAsync(owner.accounts.members.list({ account_id: account }));
    const own = members[0]!.id!;
    const last = { status: 409, errors: [{ code: 1064 }] };
    const one = { account_id: account };
    const dns = { id: idOf("DNS") } as never;
    await expect(owner.accounts.members.delete(own, one)).rejects.toMatchObject(last);
    await expect(owner.memberships.delete(own)).rejects.toMatchObject(last);
    await expect(owner.accounts.members.update(own, { ...one, roles: [dns] })).rejects.toMatchObject(last);
    const second = await join(superAdministrator, undefined, account);
    // If two members remove each other concurrently, one stays.
    const answers = await Promise.all([
      as(second.token, "DELETE", `/accounts/${account}/members/${own}`),
      as(ownerToken, "DELETE", `/accounts/${account}/members/${second.id}`),
    ]);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(server.services.accounts.membersOf(account)).toHaveLength(1);
  });
});

it("every operation has been called", () => {
  called.add("invite_accept"); // is called without credentials
  const wanted = [...memberOperations, ...membershipOperations, ...invitationOperations].map(({ id }) => id);
  expect(wanted.filter((id) => !called.has(id))).toEqual([]);
});
