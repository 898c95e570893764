import type { Schemas } from "../api/client";
import { Since } from "../parts/time";
import { many } from "../parts/words";

const hour = 3_600_000;

type View = Pick<Schemas["AdminLockView"], "permits_held" | "limits" | "limits_differ_since" | "server_now">;

/** How an entry shares the lock: of a semaphore with its limit, and its permits if it takes several. */
export function terms(of: Pick<Schemas["AdminHolder"], "mode" | "limit" | "permits">): string {
  const more = of.permits && of.permits > 1 ? `, ${of.permits} permits` : "";
  return of.mode + (of.limit ? ` of ${of.limit}` : "") + more;
}

/** The permits of a semaphore that are held, and a mark if its limits have differed for over an hour. */
export function Permits({ view }: { view: View }) {
  const { permits_held: held, limits = [], limits_differ_since: since, server_now: now } = view;
  if (!held) return null;
  const long = since && Date.parse(now) - Date.parse(since) > hour;
  return (
    <>
      <p class="soft small">
        {many(held, "permit")} held of {limits.join(" or ")}
      </p>
      {long && (
        <p class="note wait" role="status">
          <span aria-hidden="true">≠ </span>
          <b>Limits differ</b> since <Since at={since} ago />: its clients ask for {limits.join(", ")}.
        </p>
      )}
    </>
  );
}
