import type { Failure } from "../api/client";

interface FieldOf {
  /** As the API calls it: what the server objects to stands here. */
  name: string;
  label: string;
  hint?: string | undefined;
  required?: boolean;
  most?: number;
  value: string;
  set: (v: string) => void;
  failure?: Failure | undefined;
}

/** A field of a form, with what the server objects to in it. */
export function Field({ name, label, hint, required = true, most, value, set, failure }: FieldOf) {
  const wrong = failure?.field === name ? failure.message : undefined;
  return (
    <label class="field">
      {label}
      <input
        name={name}
        autoComplete="off"
        autoCapitalize="off"
        spellcheck={false}
        required={required}
        maxLength={most}
        aria-invalid={wrong !== undefined}
        aria-describedby={`${name}-hint`}
        value={value}
        onInput={(e) => set(e.currentTarget.value)}
      />
      <span
        id={`${name}-hint`}
        class={`small ${wrong === undefined ? "soft" : "wrong"}`}
        role={wrong === undefined ? undefined : "alert"}
      >
        {wrong ?? hint}
      </span>
    </label>
  );
}
