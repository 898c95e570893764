import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Failure, Schemas } from "../api/client";
import { count, many, utc } from "./words";

interface FenceOf {
  holding: number;
  waiting: number;
  /** The most posts that are drawn; the rest is a number. */
  most?: number;
}

/** Holders and waiters as a fence: full posts, then hollow ones. If not all fit, each kind gets half of the space. */
export function Fence({ holding, waiting, most = 24 }: FenceOf) {
  const full = Math.min(holding, Math.max(Math.floor(most / 2), most - waiting));
  const hollow = Math.min(waiting, most - full);
  const words = holding > 0 ? `${many(holding, "holder")}, ${many(waiting, "waiter")}` : many(waiting, "waiter");
  return (
    <span class="fence" role="img" aria-label={words} title={words}>
      {Array.from({ length: full }, (_, i) => (
        <i key={`f${i}`} />
      ))}
      {holding > full && <b class="holds">+{count(holding - full)}</b>}
      {Array.from({ length: hollow }, (_, i) => (
        <i key={`h${i}`} class="waits" />
      ))}
      {waiting > hollow && <b>+{count(waiting - hollow)}</b>}
    </span>
  );
}

/** A word with a sign and a colour; the word alone would do. */
export function Badge({ kind = "", sign, children }: { kind?: string; sign?: string; children: ComponentChildren }) {
  return (
    <span class={`badge ${kind}`}>
      {sign !== undefined && <span aria-hidden="true">{sign}</span>}
      {children}
    </span>
  );
}

/** Whether an entry holds, or waits. */
export function EntryState({ held }: { held: boolean }) {
  return held ? (
    <Badge kind="held" sign="●">
      holds
    </Badge>
  ) : (
    <Badge kind="wait" sign="○">
      waits
    </Badge>
  );
}

/** Marks a closed lock in a list; until when and why, on hover. */
export function Closed({ of }: { of?: Schemas["LockClosing"] | undefined }) {
  if (!of) return null;
  return (
    <span title={`Until ${utc(of.until)}: ${of.reason}`}>
      <Badge kind="wait" sign="‖">
        closed
      </Badge>
    </span>
  );
}

interface CalmOf {
  title: string;
  /** A curl line to try next. */
  line?: string | undefined;
  children?: ComponentChildren;
}

/** Calm is the empty state of a list: it says why there is nothing, and what to do next. */
export function Calm({ title, line, children }: CalmOf) {
  return (
    <div class="calm">
      <Posts />
      <h2>{title}</h2>
      <p class="soft">{children}</p>
      {line && (
        <>
          <pre class="try">{line}</pre>
          <Copy text={line} label="Copy the line" />
        </>
      )}
    </div>
  );
}

/** The fence of the brand. */
export function Posts() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <path d="M5 28V8l3.5-4L12 8v20zM20 28V8l3.5-4L27 8v20zM2 12h28v3.5H2zm0 8h28v3.5H2z" />
    </svg>
  );
}

/** Why a page has nothing new. That the server is away is said once, at the top of the page. */
export function Failed({ failure }: { failure: Failure | undefined }) {
  return failure === undefined || failure.away ? null : <Trouble failure={failure} />;
}

/** Why something could not be had or done. */
export function Trouble({ failure }: { failure: Failure }) {
  return (
    <p class="note harm" role="alert">
      <span aria-hidden="true">⚠ </span>
      {failure.message}
      {failure.requestId !== "" && <span class="small"> (request {failure.requestId})</span>}
    </p>
  );
}

/** Until the first answer. Why there is none is said elsewhere, but for a server that is away: that is no reason to be blank. */
export function Loading({ failure }: { failure?: Failure | undefined }) {
  if (failure && !failure.away) return null;
  return (
    <p class="soft pad" role="status">
      {failure ? "Nothing loaded yet: the server does not answer. The page retries by itself." : "Loading…"}
    </p>
  );
}

interface HeadOf {
  title: string;
  /** What the page is called in the tab and the history, if not by its title. */
  called?: string;
  children?: ComponentChildren;
}

/** The head of a page, with what can be done there. The keyboard's focus comes here from another page. */
export function Head({ title, called = title, children }: HeadOf) {
  useEffect(() => {
    document.title = `${called} – Fencepost`;
  }, [called]);
  return (
    <div class="head">
      <h1 tabIndex={-1}>{title}</h1>
      {children}
    </div>
  );
}

/** A text that one may want elsewhere, with a button that copies it. */
export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  return (
    <button type="button" onClick={() => void navigator.clipboard?.writeText(text)}>
      {label}
    </button>
  );
}
