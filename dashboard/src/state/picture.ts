import { Failure, type Schemas } from "../api/client";

/** What a watch tells: first everything, then what changes of it. */
export type Told = Pick<Schemas["WatchMessage"], "revision" | "server_now" | "replica" | "store_lost_since"> & {
  answer?: Record<string, unknown>;
  order?: string[];
  rows?: Record<string, unknown>;
  page?: Record<string, unknown>;
};

/** Picture puts together what a GET would answer, from a snapshot and the deltas after it. */
export class Picture {
  private order: readonly string[] = [];
  private rows = new Map<string, unknown>();
  private page: Record<string, unknown> | undefined;

  /** `list` is the name under which the answer has its rows, if it has any. */
  constructor(private readonly list?: string) {}

  /** Takes over one message, and returns the answer as it is by now. */
  take(kind: string, told: Told): Record<string, unknown> {
    if (kind === "snapshot") this.begin(told);
    else this.change(told);
    const { revision, server_now, replica, store_lost_since } = told;
    const answer: Record<string, unknown> = { ...this.page, revision, server_now, replica };
    if (store_lost_since !== undefined) answer.store_lost_since = store_lost_since;
    if (this.list !== undefined) answer[this.list] = this.order.map((key) => this.row(key));
    return answer;
  }

  private begin({ answer = {}, order = [] }: Told): void {
    const { [this.list ?? ""]: rows, store_lost_since: _, ...page } = answer;
    this.page = page;
    this.order = order;
    this.rows = new Map(order.map((key, i) => [key, Array.isArray(rows) ? rows[i] : undefined]));
  }

  private change({ rows = {}, order, page }: Told): void {
    if (this.page === undefined) throw outOfStep();
    if (page) this.page = page;
    for (const [key, row] of Object.entries(rows)) this.rows.set(key, row);
    if (!order) return;
    this.order = order;
    this.rows = new Map(order.map((key) => [key, this.rows.get(key)]));
  }

  private row(key: string): unknown {
    const row = this.rows.get(key);
    if (row === undefined) throw outOfStep();
    return row;
  }
}

/** What is told does not fit what was told before: a new watch begins with everything. */
function outOfStep(): Failure {
  return new Failure("out_of_step", "The stream does not fit what is on the screen.");
}
