import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

/** How long nothing has to be typed until what stands there counts, in milliseconds. */
export const settled = 300;

/** whole is the placeholder of a field that matches complete names only. */
export const whole = "Exact match";

interface FilterOf {
  label: string;
  /** What counts now, as the address has it. */
  value: string;
  /** Takes what was typed, without the spaces around it. */
  set: (v: string) => void;
  placeholder?: string;
  /** Whether `/` leads here. */
  first?: boolean;
}

/**
 * A field that filters as one types: what stands there counts once nothing was typed for a moment, and
 * at once with Enter, or when one leaves it. Until then it is a draft that no redraw of the page touches.
 */
export function FilterField({ label, value, set, placeholder, first = false }: FilterOf) {
  const draft = useSignal<string | undefined>(undefined);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const latest = useRef(set);
  latest.current = set;
  const forget = (): void => {
    clearTimeout(timer.current);
    timer.current = undefined;
  };
  const take = (): void => {
    if (timer.current === undefined) return; // nothing was typed since
    forget();
    latest.current((draft.peek() ?? "").trim());
  };
  useEffect(() => {
    // Going back, or to another page, discards the draft.
    const elsewhere = (): void => {
      forget();
      draft.value = undefined;
    };
    addEventListener("popstate", elsewhere);
    return () => {
      removeEventListener("popstate", elsewhere);
      forget();
    };
  }, [draft]);
  return (
    <label>
      {label}
      <input
        type="search"
        autoComplete="off"
        autoCapitalize="off"
        spellcheck={false}
        data-search={first || undefined}
        placeholder={placeholder}
        value={draft.value ?? value}
        onInput={(e) => {
          draft.value = e.currentTarget.value;
          clearTimeout(timer.current);
          timer.current = setTimeout(take, settled);
        }}
        onKeyDown={(e) => {
          if (e.key === "Enter") take();
        }}
        onBlur={() => {
          take();
          draft.value = undefined;
        }}
      />
    </label>
  );
}

/** The field for one tenant: an exact match. */
export function TenantField(of: Pick<FilterOf, "value" | "set" | "first">) {
  return <FilterField label="Tenant" placeholder={whole} {...of} />;
}
