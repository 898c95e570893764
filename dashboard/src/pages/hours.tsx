import { api, asked } from "../api/client";
import { Failed } from "../parts/signs";
import { Since } from "../parts/time";
import { span } from "../parts/words";
import { useLive } from "../state/live";
import { href } from "../state/route";
import { Charts } from "./contention";

/** How many waited, were granted and expired over the last hours, as far as this replica has seen them. */
export function Hours() {
  const { data, failure } = useLive("hours", 15_000, (ask) =>
    asked(api.GET("/admin/series", { ...ask, params: { query: { step_seconds: 300 } } })),
  );
  return (
    <section class="stack" aria-labelledby="hours">
      <div class="head">
        <h2 id="hours">
          Last hours{" "}
          {data?.since && (
            <span class="soft small">
              <Since at={data.since} />, in steps of {span(data.step_seconds * 1000)}
            </span>
          )}
        </h2>
        <a href={href(["contention"])}>Last 15 minutes</a>
      </div>
      <Failed failure={failure} />
      {data &&
        (data.points.length === 0 ? (
          <p class="sheet pad soft">No activity yet.</p>
        ) : (
          <Charts points={data.points} few />
        ))}
    </section>
  );
}
