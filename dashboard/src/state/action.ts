import { useSignal } from "@preact/signals";
import type { Failure } from "../api/client";
import { outcome } from "./live";

/** Something that is done once at a time, and how it went. */
export function useAction() {
  const busy = useSignal(false);
  const failure = useSignal<Failure | undefined>(undefined);
  const run = async (what: () => Promise<void>): Promise<void> => {
    if (busy.value) return;
    busy.value = true;
    failure.value = undefined;
    try {
      await what();
    } catch (e) {
      failure.value = outcome(e);
    }
    busy.value = false;
  };
  return { busy: busy.value, failure: failure.value, run };
}
