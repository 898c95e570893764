import { act, cleanup, render } from "@testing-library/preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { api, asked, Failure, failureOf, type PollInit } from "../api/client";
import { Failed } from "../parts/signs";
import { connection, paused, useLive } from "./live";
import { outOfSight } from "./store";

let load: (ask: PollInit) => Promise<unknown>;

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

it("takes a server for away that does not answer", async () => {
  load = () => new Promise(() => {});
  const { container } = render(<Page name="hangs" />);
  await after(7900);
  expect(connection.value).toBe("live");
  await after(200);
  expect([container.textContent, connection.value]).toEqual(["nothing unreachable", "lost"]);
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

it("says what the server said, and takes what a proxy says for a server that is away", async () => {
  function Failing() {
    const { failure } = useLive("x", 1000, load);
    return <Failed failure={failure} />;
  }
  load = async () => {
    throw failureOf(503, { code: "store_unavailable", detail: "the store does not answer" });
  };
  const { container } = render(<Failing />);
  await after(10);
  expect([container.textContent, connection.value]).toEqual(["⚠ the store does not answer", "live"]);
  load = async () => {
    throw failureOf(503, null);
  };
  cleanup();
  const second = render(<Failing />);
  await after(10);
  expect([second.container.textContent, connection.value]).toEqual(["", "lost"]);
});

it("knows since when the store is out of sight, of what is on the screen", async () => {
  let lost: object = {};
  load = async () => ({ revision: 7, ...lost });
  const { rerender, unmount } = render(<Page name="a" />);
  await after(10);
  expect(outOfSight.value).toBeUndefined();
  lost = { store_lost_since: "2026-01-02T15:04:05.000Z" };
  await after(1000);
  expect(outOfSight.value).toBe(Date.parse("2026-01-02T15:04:05Z"));
  lost = {};
  await after(1000);
  expect(outOfSight.value).toBeUndefined();
  lost = { store_lost_since: "2026-01-02T15:04:05.000Z" };
  await after(1000);
  lost = {};
  rerender(<Page name="b" />);
  await after(10);
  expect(outOfSight.value).toBeUndefined();
  unmount();
});

it("asks with the tag of what is on the screen, and draws nothing when that has not changed", async () => {
  const sent: (string | null)[] = [];
  let tag = '"1"';
  vi.stubGlobal("fetch", async (request: Request) => {
    sent.push(request.headers.get("If-None-Match"));
    if (sent.at(-1) === tag) return new Response(null, { status: 304, headers: { ETag: tag } });
    return Response.json({ held: sent.length }, { headers: { ETag: tag } });
  });
  let drawn = 0;
  function Overview() {
    const { data } = useLive("overview", 1000, (ask) => asked(api.GET("/admin/overview", ask)));
    drawn++;
    return <p>{data?.held ?? "nothing"}</p>;
  }
  const { container } = render(<Overview />);
  await after(10);
  const before = drawn;
  await after(3000);
  expect([sent, container.textContent, drawn]).toEqual([[null, '"1"', '"1"', '"1"'], "1", before]);
  connection.value = "lost";
  await after(1000);
  expect(connection.value).toBe("live");
  tag = '"2"';
  await after(1000);
  expect(container.textContent).toBe("6");
  vi.unstubAllGlobals();
});

it("asks for an answer again that it could not read", async () => {
  const sent: (string | null)[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    sent.push(request.headers.get("If-None-Match"));
    return new Response(sent.length === 1 ? "{" : '{"held":7}', { headers: { ETag: '"1"' } });
  });
  function Overview() {
    const { data } = useLive("overview", 1000, (ask) => asked(api.GET("/admin/overview", ask)));
    return <p>{data?.held ?? "nothing"}</p>;
  }
  const { container } = render(<Overview />);
  await after(3000);
  expect([sent[1], container.textContent]).toEqual([null, "7"]);
  vi.unstubAllGlobals();
});

it("has one request of a page under way at a time, and none while nobody can see the page", async () => {
  const under: (() => void)[] = [];
  let most = 0;
  let asking = 0;
  load = async () => {
    most = Math.max(most, ++asking);
    await new Promise<void>((resolve) => under.push(resolve));
    asking--;
    return "answer";
  };
  render(
    <>
      <Page name="a" />
      <Page name="b" />
    </>,
  );
  for (let i = 0; i < 4; i++) {
    await after(1500);
    expect(asking).toBe(1);
    under.shift()?.();
    await after(10);
  }
  expect(most).toBe(1);
  const visible = vi.spyOn(document, "hidden", "get").mockReturnValue(true);
  await act(() => {
    document.dispatchEvent(new Event("visibilitychange"));
  });
  asking = 0;
  await after(20_000);
  expect(asking).toBe(0);
  visible.mockReturnValue(false);
  await act(() => {
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await after(10);
  expect(asking).toBe(1);
});
