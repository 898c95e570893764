import { act, cleanup, render } from "@testing-library/preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { connection, paused } from "./live";
import { useWatched } from "./watch";

/** One stream that the page has opened. */
interface Stream {
  path: string;
  aborted: () => boolean;
  tell: (event: string, data: object) => void;
  comment: () => void;
  cut: () => void;
}

let streams: Stream[];
let refusal: number;
let asked: number;
let asking: () => Promise<{ n: number }>;

const seen = { revision: 1, server_now: "", replica: "r" };

function open(url: string, signal: AbortSignal): Response {
  let body: ReadableStreamDefaultController<Uint8Array> | undefined;
  const text = new TextEncoder();
  signal.addEventListener("abort", () => body?.error(new DOMException("stopped", "AbortError")));
  streams.push({
    path: new URL(url).search,
    aborted: () => signal.aborted,
    tell: (event, data) => body?.enqueue(text.encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)),
    comment: () => body?.enqueue(text.encode(":\n\n")),
    cut: () => body?.error(new TypeError("network error")),
  });
  return new Response(
    new ReadableStream<Uint8Array>({
      start: (c) => {
        body = c;
      },
    }),
  );
}

function Page({ name = "a" }: { name?: string }) {
  const { data, failure } = useWatched<{ n: number }>({
    query: { view: "overview", tenant: undefined, name },
    every: 1000,
    load: () => {
      asked++;
      return asking();
    },
  });
  return <p>{`${data?.n ?? "nothing"} ${failure?.code ?? "fine"}`}</p>;
}

const after = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms).then(() => {}));
/** Passes time in which the server says no more than that it is there, as it does every 5 seconds. */
async function quiet(ms: number) {
  for (let passed = 0; passed < ms; passed += 5000) {
    await after(5000);
    last().comment();
  }
  await after(10);
}
const last = () => streams[streams.length - 1] as Stream;

beforeEach(() => {
  vi.useFakeTimers();
  streams = [];
  refusal = 0;
  asked = 0;
  asking = async () => ({ n: 100 + asked });
  paused.value = false;
  connection.value = "live";
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    if (refusal !== 0) return Response.json({ code: "quota_exceeded", detail: "no" }, { status: refusal });
    return open(url, init.signal as AbortSignal);
  });
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

it("shows what it is told, by one stream, and asks for nothing besides", async () => {
  const { container } = render(<Page />);
  await after(10);
  expect(last().path).toBe("?view=overview&name=a");
  last().tell("snapshot", { ...seen, order: [], answer: { ...seen, n: 1 } });
  await after(10);
  expect(container.textContent).toBe("1 fine");
  last().tell("delta", { ...seen, page: { n: 2 } });
  await quiet(20_000);
  expect(container.textContent).toBe("2 fine");
  expect([streams.length, asked]).toEqual([1, 0]);
});

it("says that the connection is lost, keeps what it has, and takes up again", async () => {
  const { container } = render(<Page />);
  await after(10);
  last().tell("snapshot", { ...seen, order: [], answer: { n: 1 } });
  await after(10);
  last().cut();
  await after(10);
  expect([container.textContent, connection.value]).toEqual(["1 unreachable", "lost"]);
  await after(2000);
  expect(streams).toHaveLength(2);
  last().tell("snapshot", { ...seen, order: [], answer: { n: 5 } });
  await after(10);
  expect([container.textContent, connection.value]).toEqual(["5 fine", "live"]);
});

it("takes a server for away that has said nothing for ten seconds, and stays with that while it hangs", async () => {
  render(<Page />);
  await after(10);
  last().tell("snapshot", { ...seen, order: [], answer: { n: 1 } });
  await after(9900);
  expect(connection.value).toBe("live");
  asking = () => new Promise(() => {});
  await after(200);
  expect(streams[0]?.aborted()).toBe(true);
  expect(connection.value).toBe("lost");
  await after(60_000);
  expect(streams.length).toBeGreaterThan(2);
  expect(connection.value).toBe("lost");
  asking = async () => ({ n: 7 });
  await after(30_000);
  expect(connection.value).toBe("live");
});

it.each([
  ["is refused", 429],
  ["tells nothing", 0],
])("asks every so often where the stream %s, and later tries that again", async (_, status) => {
  refusal = status;
  const { container } = render(<Page />);
  await after(3100);
  expect(container.textContent).toContain("fine");
  expect(asked).toBeGreaterThan(0);
  await after(10_000);
  expect(asked).toBeGreaterThan(9);
  refusal = 0;
  const tried = streams.length;
  for (let i = 0; i < 50 && streams.length === tried; i++) await after(500);
  last().tell("snapshot", { ...seen, order: [], answer: { n: 1 } });
  await after(10);
  expect(container.textContent).toBe("1 fine");
  const before = asked;
  await quiet(20_000);
  expect(asked).toBe(before);
});

it("has no stream while it is paused or cannot be seen, and begins with everything after that", async () => {
  const { container } = render(<Page />);
  await after(10);
  last().tell("snapshot", { ...seen, order: [], answer: { n: 1 } });
  await after(10);
  await act(() => {
    paused.value = true;
  });
  expect(last().aborted()).toBe(true);
  await after(20_000);
  expect([container.textContent, streams.length, asked]).toEqual(["1 fine", 1, 0]);
  await act(() => {
    paused.value = false;
  });
  await after(10);
  expect(streams).toHaveLength(2);
  const visible = vi.spyOn(document, "hidden", "get").mockReturnValue(true);
  await act(() => {
    document.dispatchEvent(new Event("visibilitychange"));
  });
  expect(last().aborted()).toBe(true);
  visible.mockReturnValue(false);
  await act(() => {
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await after(10);
  expect(streams).toHaveLength(3);
});

it("forgets the stream of what is not on the screen any more", async () => {
  const { container, rerender } = render(<Page />);
  await after(10);
  rerender(<Page name="b" />);
  await after(10);
  expect([streams[0]?.aborted(), last().path]).toEqual([true, "?view=overview&name=b"]);
  expect(container.textContent).toBe("nothing fine");
});

it("takes a stream that says only that it is there for a server that answers", async () => {
  render(<Page />);
  await after(10);
  last().tell("snapshot", { ...seen, order: [], answer: { n: 1 } });
  await after(10);
  connection.value = "lost"; // as of something else that failed
  last().comment();
  await after(10);
  expect(connection.value).toBe("live");
});
