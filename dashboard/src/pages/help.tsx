import { Dialog } from "../parts/dialog";
import { help, places, shortcuts } from "../state/keys";

const keys = [
  ["/", "search; opens Locks on a page without a search field"],
  ["j k", "next and previous row"],
  ["Enter", "open the focused row"],
  ["p", "pause or resume live updates"],
  ["?", "this list"],
] as const;

/** The list of keys, while it is asked for. */
export function Help() {
  if (!help.value) return null;
  return (
    <Dialog title="Keyboard shortcuts" close={() => (help.value = false)}>
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
        Enable single-key shortcuts
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
