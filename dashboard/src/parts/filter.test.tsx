import { act, cleanup, fireEvent, render } from "@testing-library/preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FilterField, settled } from "./filter";

let got: string[];

const page = (value: string) => <FilterField label="Tenant" value={value} set={(v) => got.push(v)} />;
const after = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms).then(() => {}));

/** Renders a field, types one key at a time, and has the page redrawn with the old value after each. */
async function type(text: string, old = "") {
  const { container, rerender } = render(page(old));
  const input = container.querySelector("input") as HTMLInputElement;
  input.focus();
  for (const key of text) {
    fireEvent.input(input, { target: { value: input.value + key } });
    await after(100);
    rerender(page(old));
  }
  return { input, rerender };
}

beforeEach(() => {
  vi.useFakeTimers();
  got = [];
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

it("keeps what is typed through redraws, and takes it once that has settled", async () => {
  const { input, rerender } = await type(" acme ");
  expect([input.value, got]).toEqual([" acme ", []]);
  await after(settled);
  expect(got).toEqual(["acme"]);
  rerender(page("acme"));
  expect(input.value).toBe(" acme ");
  fireEvent.blur(input);
  await after(0);
  expect([input.value, got]).toEqual(["acme", ["acme"]]);
});

it.each([
  ["Enter", (input: HTMLInputElement) => fireEvent.keyDown(input, { key: "Enter" })],
  ["leaving the field", (input: HTMLInputElement) => fireEvent.blur(input)],
])("takes it at once with %s, and only once", async (_, done) => {
  const { input } = await type("acme");
  done(input);
  expect(got).toEqual(["acme"]);
  await after(10 * settled);
  expect(got).toEqual(["acme"]);
});

it("can be emptied where something else counts then", async () => {
  const { input, rerender } = await type("", "acme");
  fireEvent.input(input, { target: { value: "" } });
  await after(settled);
  expect(got).toEqual([""]);
  rerender(page("demo"));
  expect(input.value).toBe("");
  fireEvent.input(input, { target: { value: "s" } });
  rerender(page("demo"));
  expect(input.value).toBe("s");
});

it("shows what the address has once somebody went elsewhere, and writes nothing there", async () => {
  const { input, rerender } = await type("acme");
  await act(() => {
    dispatchEvent(new PopStateEvent("popstate"));
  });
  rerender(page("shop"));
  await after(10 * settled);
  expect([input.value, got]).toEqual(["shop", []]);
  fireEvent.input(input, { target: { value: "sh" } });
  cleanup();
  await after(10 * settled);
  expect(got).toEqual([]);
});
