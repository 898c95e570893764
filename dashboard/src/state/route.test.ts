import { expect, it } from "vitest";
import { href, parseRoute, route, setQuery } from "./route";

it("reads what it writes, whatever is in it", () => {
  for (const path of [[], ["locks"], ["locks", "acme", "orders:42"], ["locks", "a", "a/b?c#d%&=+ ü"]]) {
    const got = parseRoute(href(path, { search: "a&b=c #?", none: "" }));
    expect(got.path).toEqual(path);
    expect([...got.query]).toEqual([["search", "a&b=c #?"]]);
  }
});

it("does not take an address that makes no sense for the first page", () => {
  expect(parseRoute("#/%E0%A4%A").path).toHaveLength(1);
  expect(parseRoute("#/locks/demo/%zz").path).not.toContain("locks");
  expect(parseRoute("").path).toEqual([]);
});

it("changes the query in place, and keeps the rest of it", () => {
  location.hash = "#/locks?state=held&holder=w";
  dispatchEvent(new Event("hashchange"));
  const before = history.length;
  setQuery({ state: "contended", holder: "" });
  expect([...route.value.query]).toEqual([["state", "contended"]]);
  expect(history.length).toBe(before);
});
