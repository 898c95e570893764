import { describe, expect, it } from "vitest";
import { type Message, Parser } from "./sse";

function read(...pieces: string[]): Message[] {
  const got: Message[] = [];
  const parser = new Parser((m) => got.push(m));
  for (const p of pieces) parser.push(p);
  return got;
}

describe("Parser", () => {
  const stream = 'retry: 1000\nid: 1-0\n\nid: 7-0\nevent: lock.acquired\ndata: {"a":1}\n\n:\nid: 9-0\n\n';

  it("tells messages with their id and event, and no comments", () => {
    expect(read(stream)).toEqual([{ id: "7-0", event: "lock.acquired", data: '{"a":1}' }]);
  });

  it("does not mind where the stream is cut", () => {
    for (let i = 0; i <= stream.length; i++) {
      expect(read(stream.slice(0, i), stream.slice(i))).toHaveLength(1);
    }
    expect(read(...stream)).toHaveLength(1);
  });

  it("knows from where to go on, also without a message", () => {
    const parser = new Parser(() => {});
    parser.push(stream);
    expect(parser.lastId).toBe("9-0");
  });

  it("joins lines of data, and takes line ends of both kinds", () => {
    expect(read("data: a\r\ndata:b\r\n\r\n")[0]?.data).toBe("a\nb");
  });

  it("gives up on a line without an end", () => {
    expect(() => read("x".repeat(5 << 20))).toThrow("cannot be read");
  });
});
