import { expect, it } from "vitest";
import { filterOf } from "./locks";

it("takes from the address what the server knows, and nothing else", () => {
  expect(filterOf(new URLSearchParams("search=orders:*&state=contended&sort=held_for&cursor=x&other=1"))).toEqual({
    search: "orders:*",
    state: "contended",
    sort: "held_for",
    cursor: "x",
  });
  expect(filterOf(new URLSearchParams("state=nonsense&sort=--name&tenant="))).toEqual({ sort: "-waiters" });
});
