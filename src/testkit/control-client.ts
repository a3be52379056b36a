/** The URL of a platform's control surface, and the token for it. */
export interface ControlAddress {
  url: string;
  token: string;
}

/** Calls the control surface of a platform. Failed calls throw an Error with the message of the answer. */
export class ControlClient {
  readonly address: ControlAddress;

  constructor(address: ControlAddress) {
    this.address = address;
  }

  async json<T = void>(method: string, path: string, body?: object): Promise<T> {
    const answer = await this.#send(method, path, body);
    return (await answer.json()) as T;
  }

  async bytes(path: string): Promise<Uint8Array> {
    return new Uint8Array(await (await this.#send("GET", path)).arrayBuffer());
  }

  async #send(method: string, path: string, body?: object): Promise<Response> {
    const answer = await fetch(`${this.address.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.address.token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (answer.ok) return answer;
    const { error } = (await answer.json().catch(() => ({}))) as { error?: string };
    throw new Error(error ?? `The control surface answered ${answer.status}`);
  }
}
