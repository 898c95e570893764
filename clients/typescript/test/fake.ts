import { Fencepost } from "@fencepost/client";

type Options = ConstructorParameters<typeof Fencepost>[2];

/** What a server answers to a grant and to renewals. */
export function entry(ttl: number, more: object = {}): Response {
  const fields = { id: "e1", state: "held", token: "lock-secret", ttl_seconds: ttl, fence: 7 };
  return Response.json({ ...fields, ...more });
}

/** A client whose requests a function answers. It closes itself. */
export class Faked implements AsyncDisposable {
  readonly requests: { method: string; url: string; headers: Headers }[] = [];
  readonly logged: string[] = [];
  readonly client: Fencepost;

  constructor(answer: (method: string) => Response | Promise<Response>, options: Options = {}) {
    this.client = new Fencepost("http://a", "bearer-secret", {
      log: (message, details) => this.logged.push(`${message} ${Object.values(details)}`),
      fetch: async (url, init = {}) => {
        const method = init.method ?? "";
        this.requests.push({ method, url: String(url), headers: new Headers(init.headers) });
        return answer(method);
      },
      ...options,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
  }
}
