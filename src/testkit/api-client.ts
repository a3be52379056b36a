import type { PermissionName, TestAccount } from "./selvedge.ts";

interface Group {
  id: string;
  name: string;
  /** The kinds of resources to which the group can apply. */
  scopes: string[];
}

const base = "com.cloudflare.api";

/** Creates accounts and tokens through the management API, with the owner's token. */
export class ApiClient {
  readonly #url: string;
  readonly #token: string;
  #groups: Promise<Group[]> | undefined;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  async call<T>(method: string, path: string, body?: object): Promise<T> {
    const answer = await fetch(`${this.#url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const { success, errors, result } = (await answer.json()) as {
      success: boolean;
      errors: { code: number; message: string }[];
      result: T;
    };
    if (!success) throw new Error(errors.map(({ code, message }) => `${message} (${code})`).join("; "));
    return result;
  }

  /** Creates an account, and a token for everything in it. */
  async account(name: string, env: TestAccount["env"]): Promise<TestAccount> {
    const { id } = await this.call<{ id: string }>("POST", "/accounts", { name, type: "standard" });
    const groups = (await this.groups()).filter(({ scopes }) => !scopes.includes(`${base}.user`));
    const token = await this.#createToken(`All of ${name}`, groups, id, {});
    return {
      accountId: id,
      token,
      env: { ...env, CLOUDFLARE_API_TOKEN: token, CLOUDFLARE_ACCOUNT_ID: id },
    };
  }

  /** Creates a token with the named permission groups, for an account or one of its zones. Returns its value. */
  async tokenWith(
    names: readonly PermissionName[],
    accountId: string,
    { zone, expires }: { zone?: string | undefined; expires?: Date | undefined },
  ): Promise<string> {
    const groups = await this.groups();
    const wanted = names.map((name) => {
      const found = groups.find((group) => group.name === name);
      if (found === undefined)
        throw new Error(
          `Expected the name of a permission group, such as "DNS Write", but received ${JSON.stringify(name)}`,
        );
      return found;
    });
    return this.#createToken(names.join(", "), wanted, accountId, { zone, expires });
  }

  async groups(): Promise<Group[]> {
    this.#groups ??= this.call<Group[]>("GET", "/user/tokens/permission_groups");
    return this.#groups;
  }

  async #createToken(
    name: string,
    groups: readonly Group[],
    accountId: string,
    { zone, expires }: { zone?: string | undefined; expires?: Date | undefined },
  ): Promise<string> {
    const account = `${base}.account.${accountId}`;
    const zones =
      zone === undefined
        ? { [account]: { [`${base}.account.zone.*`]: "*" } }
        : { [`${base}.account.zone.${zone}`]: "*" };
    const isOfZones = ({ scopes }: Group): boolean => scopes.includes(`${base}.account.zone`);
    const policies = [
      { groups: groups.filter(isOfZones), resources: zones },
      { groups: groups.filter((group) => !isOfZones(group)), resources: { [account]: "*" } },
    ]
      .filter((policy) => policy.groups.length > 0)
      .map((policy) => ({
        effect: "allow",
        permission_groups: policy.groups.map(({ id }) => ({ id })),
        resources: policy.resources,
      }));
    const { value } = await this.call<{ value: string }>("POST", "/user/tokens", {
      name: name.slice(0, 100),
      policies,
      ...(expires === undefined ? {} : { expires_on: expires.toISOString().replace(/\.\d+Z/, "Z") }),
    });
    return value;
  }
}
