/**
 * Compares the fence of a holder in the transaction that writes, in PostgreSQL, MySQL, MariaDB and
 * SQLite. The tables are in fencekit.
 *
 * @module
 */
import type { Fencepost } from "./client.js";

const raise = `INSERT INTO fences (name, fence) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE
SET fence = CASE WHEN fences.fence < excluded.fence THEN excluded.fence ELSE fences.fence END
RETURNING fence`;

const raiseMysql = `INSERT INTO fences (name, fence) VALUES (?, ?)
ON DUPLICATE KEY UPDATE fence = GREATEST(fence, ? + 0)`;

const raisedMysql = "SELECT fence FROM fences WHERE name = ? FOR UPDATE";

/** A later holder of the lock has written: roll back, and stop. */
export class StaleFence extends Error {
  override readonly name = "StaleFence";

  /**
   * @param presented is the fence of the refused holder
   * @param known is the greatest that the resource has seen
   */
  constructor(
    readonly lock: string,
    readonly presented: number,
    readonly known: number,
    readonly resource: string,
  ) {
    super(`the fence ${presented} of ${lock} is stale: ${known} has written`);
  }

  /** Shows the refused write to operators. Call it after the transaction: the client retries. */
  report(client: Pick<Fencepost, "staleWrite">): Promise<void> {
    const { lock, presented, known, resource } = this;
    return client.staleWrite(lock, { fencePresented: presented, fenceKnown: known, resource });
  }
}

/** What a {@link SqlGuard} compares. */
export interface SqlGuardOptions {
  /** Name of the lock, and of its row in the table of fences. */
  lock: string;
  fence: number;
  /** What the lock protects, for reports. It is no secret. */
  resource: string;
  /** `postgresql` by default; `mysql` is MariaDB's too. */
  dialect?: "postgresql" | "sqlite" | "mysql" | undefined;
}

/** Runs a statement in the transaction, and gives its rows as objects. */
export type Query = (sql: string, values: (string | number)[]) => unknown;

/** Compares the fence of a grant with the greatest that a database has seen. */
export class SqlGuard {
  readonly #options: SqlGuardOptions;

  /** @throws {TypeError} if the dialect is unknown */
  constructor(options: SqlGuardOptions) {
    const { dialect = "postgresql" } = options;
    if (!["postgresql", "sqlite", "mysql"].includes(dialect)) {
      throw new TypeError(`unknown dialect: ${dialect}`);
    }
    this.#options = options;
  }

  /**
   * Raises the fence of the lock in the table of fences, and locks its row until the transaction
   * ends. Call it before the transaction reads or writes anything else. With `pg`:
   * `guard.raise((sql, values) => client.query(sql, values).then((result) => result.rows))`.
   *
   * @throws {StaleFence} if a later holder was here: roll back
   */
  async raise(query: Query): Promise<void> {
    const { lock, fence, dialect } = this.#options;
    let rows: unknown;
    if (dialect === "mysql") {
      await query(raiseMysql, [lock, fence, fence]);
      rows = await query(raisedMysql, [lock]);
    } else {
      const sql = dialect === "sqlite" ? raise.replace(/\$\d/g, "?") : raise;
      rows = await query(sql, [lock, fence]);
    }
    this.check((rows as { fence: string }[])[0]?.fence ?? "");
  }

  /**
   * Compares a fence in a row of your own: read it if a conditional UPDATE affected no row. Drivers
   * may give a bigint or a text.
   *
   * @throws {StaleFence} if it is greater than that of the guard
   */
  check(known: number | bigint | string): void {
    const { lock, fence, resource } = this.#options;
    const greatest = Number(known);
    if (known === "" || !Number.isSafeInteger(greatest)) {
      throw new TypeError(`the database gives no fence: ${known}`);
    }
    if (greatest > fence) throw new StaleFence(lock, fence, greatest, resource);
  }
}
