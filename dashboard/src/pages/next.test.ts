import { describe, expect, it } from "vitest";
import type { Schemas } from "../api/client";
import { nextAfter, nextInWords } from "./next";

type Mode = "exclusive" | "shared" | "semaphore";

/** A queue in few letters: `x` wants it alone, `s` shares it, and a digit is one of so many. */
function view(holders: string, waiters: string): Schemas["AdminLockView"] {
  const mode = (c: string): Mode => (c === "x" ? "exclusive" : c === "s" ? "shared" : "semaphore");
  const entry = (c: string, id: string) => ({
    id,
    holder: id,
    mode: mode(c),
    ttl_seconds: 30,
    ...(Number(c) > 0 ? { limit: Number(c) } : {}),
  });
  return {
    tenant: "t",
    name: "n",
    replica: "r",
    revision: 1,
    server_now: "",
    figures: {} as Schemas["AdminFigures"],
    holding: holders.length,
    waiting: waiters.length,
    holders: [...holders].map((c, i) => ({ ...entry(c, `h${i}`), fence: i + 1, since: "" })),
    waiters: [...waiters].map((c, i) => ({
      ...entry(c, `w${i}`),
      number: 10 + i,
      position: i + 1,
      enqueued_at: "",
    })),
  };
}

describe("nextAfter", () => {
  it.each([
    ["x", "xx", "h0", "w0"],
    ["x", "ssx", "h0", "w0 w1"],
    ["x", "", "h0", ""],
    ["ss", "x", "h0", ""],
    ["s", "xs", "h0", "w0"],
    ["s", "xs", "w0", "w1"],
    ["x", "xx", "w0", ""],
    ["222", "22", "h1", ""],
    ["22", "22", "h1", "w0"],
  ])("of %s with %s behind it, without %s, is: %s", (holders, waiters, id, granted) => {
    expect(
      nextAfter(view(holders, waiters), id)
        .granted.map((w) => w.id)
        .join(" "),
    ).toBe(granted);
  });

  it("counts those who hold and are not listed", () => {
    const many = view("s", "sx");
    many.holding = 100;
    expect(nextAfter(many, "h0")).toMatchObject({ stay: 99, granted: [{ id: "w0" }] });
  });
});

it("says who is next, or that nobody is", () => {
  expect(nextInWords(view("x", "xx"), "h0")).toBe("Granted next: w0 with fence 10.");
  expect(nextInWords(view("x", "sssss"), "h0")).toContain(" and 2 more.");
  expect(nextInWords(view("x", ""), "h0")).toContain("free");
  expect(nextInWords(view("ss", "x"), "h0")).toBe("1 other holder keeps it. No waiter is granted.");
  expect(nextInWords(view("sss", "x"), "w0")).toBe("3 holders keep it. No waiter is granted.");
});
