import { Copy } from "../parts/signs";
import { many } from "../parts/words";

/** What a reason has at least, in characters without the spaces around it. */
const shortest = 10;

interface ReasonOf {
  value: string;
  set: (v: string) => void;
  /** The hint below the field: the readers of the reason. */
  told?: string;
}

/** The reason of an action: one line, which the tenant sees too unless the hint says otherwise. */
export function ReasonField({ value, set, told = "The tenant sees it, and the audit keeps it." }: ReasonOf) {
  const missing = shortest - [...value.trim()].length;
  return (
    <label class="field">
      Reason
      <input
        name="reason"
        autoComplete="off"
        required
        maxLength={500}
        aria-describedby="reason-hint"
        value={value}
        onInput={(e) => set(e.currentTarget.value)}
      />
      <span id="reason-hint" class="soft small">
        {missing > 0 ? `At least ${many(missing, "more character")}. ` : ""}
        {told}
      </span>
    </label>
  );
}

export function isReason(text: string): boolean {
  return [...text.trim()].length >= shortest;
}

/** Line is a curl line, folded away until the reader opens it. */
export function Line({ text, title = "The same with curl" }: { text: string; title?: string }) {
  return (
    <details>
      <summary>{title}</summary>
      <div class="stack">
        <pre>{text}</pre>
        <div class="row end">
          <Copy text={text} />
        </div>
      </div>
    </details>
  );
}

/** A name that the user has to type, against slips that cannot be undone. */
export function ConfirmField({ text, value, set }: { text: string; value: string; set: (v: string) => void }) {
  return (
    <label class="field">
      <span>
        Type <b>{text}</b> to confirm
      </span>
      <input
        name="confirm"
        autoComplete="off"
        autoCapitalize="off"
        spellcheck={false}
        required
        aria-describedby="confirm-hint"
        value={value}
        onInput={(e) => set(e.currentTarget.value)}
      />
      <span id="confirm-hint" class="soft small" role="status">
        {!text.startsWith(value) && "The text does not match."}
      </span>
    </label>
  );
}
