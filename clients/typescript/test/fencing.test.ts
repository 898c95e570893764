// The guard of SQL. The package fencekit runs the same statements in the databases.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Query, SqlGuard, StaleFence } from "@fencepost/client/fencing";

const options = { lock: "account:7", fence: 34, resource: "accounts" };

test("a greater fence in the table is stale, an equal one is not", async () => {
  const guard = new SqlGuard(options);
  for (const fence of [34, "34", 34n]) await guard.raise(() => [{ fence }]);
  const stale = { name: "StaleFence", presented: 34, known: 35, lock: "account:7" };
  await assert.rejects(
    guard.raise(async () => [{ fence: "35" }]),
    stale,
  );
});

test("a database that gives no fence is an error", async () => {
  const guard = new SqlGuard(options);
  for (const rows of [[], [{ fence: null }], [{ rows: 1 }], { rows: [] }]) {
    await assert.rejects(
      guard.raise(() => rows),
      TypeError,
    );
  }
});

test("each dialect has its parameters", async () => {
  const expected = {
    postgresql: [["$1 $2", "account:7", 34]],
    sqlite: [["? ?", "account:7", 34]],
    mysql: [
      ["? ? ?", "account:7", 34, 34],
      ["?", "account:7"],
    ],
  } as const;
  for (const dialect of ["postgresql", "sqlite", "mysql"] as const) {
    const seen: unknown[] = [];
    const query: Query = (sql, values) => {
      seen.push([sql.match(/\$\d|\?/g)?.join(" "), ...values]);
      return [{ fence: 34 }];
    };
    await new SqlGuard({ ...options, dialect }).raise(query);
    assert.deepEqual(seen, expected[dialect]);
  }
});

test("an unknown dialect is an error", () => {
  for (const dialect of ["mariadb", "postgres", ""]) {
    assert.throws(() => new SqlGuard({ ...options, dialect: dialect as never }), TypeError);
  }
});

test("a report has the lock, both fences and the resource", async () => {
  const seen: unknown[] = [];
  const staleWrite = async (...report: unknown[]) => void seen.push(...report);
  await new StaleFence("account:7", 34, 35, "accounts").report({ staleWrite });
  assert.deepEqual(seen, [
    "account:7",
    { fencePresented: 34, fenceKnown: 35, resource: "accounts" },
  ]);
});
