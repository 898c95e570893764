import { shut } from "../parts/dialog";
import { Copy } from "../parts/signs";

/** A new secret, in a dialog. Nothing else on the page keeps it, so it is gone with the dialog. */
export function Secret({ text }: { text: string }) {
  return (
    <div class="stack">
      <p class="note wait">
        <span aria-hidden="true">⚠ </span>Copy the secret now. The server does not show it again.
      </p>
      <pre data-secret>{text}</pre>
      <div class="row end">
        <Copy text={text} />
        <button type="button" class="main" onClick={shut}>
          Close
        </button>
      </div>
    </div>
  );
}
