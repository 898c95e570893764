import { Dialog } from "../parts/dialog";
import { help, places, shortcuts } from "../state/keys";

const keys = [
  ["/", "search; on a page without a field for that, among all locks"],
  ["j k", "next and previous row"],
  ["Enter", "open the row, where its link or the row has the focus"],
  ["p", "pause, or go on"],
  ["?", "this list"],
] as const;

/** The list of keys, while it is asked for. */
export function Help() {
  if (!help.value) return null;
  return (
    <Dialog title="Keys" close={() => (help.value = false)}>
      <dl class="fields">
        {places.map((p) => (
          <Key key={p.key} keys={`g ${p.key}`} does={p.name} />
        ))}
        {keys.map(([k, does]) => (
          <Key key={k} keys={k} does={does} />
        ))}
      </dl>
      <label class="row">
        <input
          type="checkbox"
          checked={shortcuts.value === "on"}
          onChange={(e) => (shortcuts.value = e.currentTarget.checked ? "on" : "off")}
        />
        Single keys do this
      </label>
    </Dialog>
  );
}

function Key({ keys, does }: { keys: string; does: string }) {
  return (
    <>
      <dt>
        {keys.split(" ").map((k) => (
          <kbd key={k}>{k}</kbd>
        ))}
      </dt>
      <dd>{does}</dd>
    </>
  );
}
