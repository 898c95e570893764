import type { ComponentChildren, TargetedEvent } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A dialog over the page. Escape closes it, and the focus goes back to where it was. */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
    begin(element.current);
  }, []);
  const closed = (): void => {
    // What had the focus may be gone: then the page has it, and not nothing, or what the dialog had.
    const at = document.activeElement;
    if (at === document.body || element.current?.contains(at)) document.getElementById("main")?.focus();
    close();
  };
  return (
    <dialog ref={element} aria-labelledby="dialog-title" onClose={closed}>
      <div class="pad">
        <div class="head">
          <h2 id="dialog-title">{title}</h2>
          <button type="button" class="quiet" aria-label="Close" onClick={shut}>
            ✕
          </button>
        </div>
        {children}
      </div>
    </dialog>
  );
}

/** Has the keyboard begin with what is asked: the first field, or what ends the dialog without doing anything. */
function begin(dialog: HTMLElement | null): void {
  const field = "input:not([type=checkbox]), select, textarea";
  (dialog?.querySelector<HTMLElement>(field) ?? dialog?.querySelector<HTMLElement>(".row.end button"))?.focus();
}

/** Closes the dialog in which something was pressed. */
export function shut(e: TargetedEvent<HTMLElement>): void {
  e.currentTarget.closest("dialog")?.close();
}
