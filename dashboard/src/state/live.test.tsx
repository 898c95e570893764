import { act, cleanup, render } from "@testing-library/preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Failure } from "../api/client";
import { connection, paused, useLive } from "./live";

let load: (signal: AbortSignal) => Promise<string>;

function Page({ name }: { name: string }) {
  const { data, failure } = useLive(name, 1000, load);
  return <p>{`${data ?? "nothing"} ${failure?.code ?? "fine"}`}</p>;
}

const after = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms).then(() => {}));

beforeEach(() => {
  vi.useFakeTimers();
  paused.value = false;
  connection.value = "live";
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

it("asks again, and shows the newest", async () => {
  let n = 0;
  load = async () => `answer ${++n}`;
  const { container } = render(<Page name="a" />);
  await after(10);
  expect(container.textContent).toBe("answer 1 fine");
  await after(1000);
  expect(container.textContent).toBe("answer 2 fine");
});

it("stands still while it is paused, but shows what was not there yet", async () => {
  let n = 0;
  load = async () => `answer ${++n}`;
  const { container, rerender } = render(<Page name="a" />);
  await after(10);
  await act(() => {
    paused.value = true;
  });
  await after(10_000);
  expect(container.textContent).toBe("answer 1 fine");
  rerender(<Page name="b" />);
  await after(10);
  expect(container.textContent).toBe("answer 2 fine");
  await after(10_000);
  expect(container.textContent).toBe("answer 2 fine");
});

it("keeps what it has when the connection is lost, says so, and comes back", async () => {
  let away = false;
  load = async () => {
    if (away) throw new Failure("unreachable", "away");
    return "answer";
  };
  const { container } = render(<Page name="a" />);
  await after(10);
  away = true;
  await after(1000);
  expect(container.textContent).toBe("answer unreachable");
  expect(connection.value).toBe("lost");
  away = false;
  await after(20_000);
  expect(container.textContent).toBe("answer fine");
  expect(connection.value).toBe("live");
});

it("forgets an answer that comes when another thing is asked for", async () => {
  const answers: ((v: string) => void)[] = [];
  load = () => new Promise((resolve) => answers.push(resolve));
  const { container, rerender } = render(<Page name="a" />);
  await after(10);
  rerender(<Page name="b" />);
  await after(10);
  answers[0]?.("late");
  await after(10);
  expect(container.textContent).toBe("nothing fine");
  answers[1]?.("new");
  await after(10);
  expect(container.textContent).toBe("new fine");
});
