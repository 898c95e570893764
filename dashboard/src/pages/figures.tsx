import type { Schemas } from "../api/client";
import { Badge } from "../parts/signs";
import { many, span } from "../parts/words";

/** How long waits and holds of a lock took, and the TTL that these suggest. */
export function Figures({ figures }: { figures: Schemas["AdminFigures"] }) {
  return (
    <section class="stack" aria-labelledby="figures">
      <h2 id="figures">
        How it has been <span class="soft small">as this replica saw it since it started</span>
      </h2>
      <div class="columns">
        <Distribution
          name="Waits"
          steps={figures.waits}
          of={figures.wait_seconds}
          none="Nobody has been granted it yet."
        />
        <Distribution
          name="Holds"
          steps={figures.holds}
          of={figures.hold_seconds}
          none="Nobody has given it back yet."
        />
        <div class="sheet pad stack">
          <h3>Lease</h3>
          <p>
            {many(figures.acquisitions, "grant")},{" "}
            {figures.expirations > 0 ? (
              <Badge kind="harm" sign="⚠">
                {many(figures.expirations, "lease")} ran out
              </Badge>
            ) : (
              "no lease ran out"
            )}
          </p>
          {figures.recommended_ttl_seconds !== undefined && (
            <p>
              Suggested TTL: <b>{span(figures.recommended_ttl_seconds * 1000)}</b>
            </p>
          )}
          <p class="soft">{figures.recommended_ttl_reason}</p>
        </div>
      </div>
    </section>
  );
}

interface DistributionOf {
  name: string;
  steps: Schemas["DistributionStep"][];
  of?: Schemas["Percentiles"] | undefined;
  none: string;
}

/** How long something took: bars for the eye, percentiles in words. */
function Distribution({ name, steps, of, none }: DistributionOf) {
  const highest = Math.max(...steps.map((s) => s.count));
  return (
    <div class="sheet pad stack">
      <h3>{name}</h3>
      {steps.length === 0 ? (
        <p class="soft">{none}</p>
      ) : (
        <dl class="fields small">
          {steps.map((s) => [
            <dt key={`t${s.up_to_seconds}`} class="number">
              up to {span(s.up_to_seconds * 1000)}
            </dt>,
            <dd key={`d${s.up_to_seconds}`} class="step">
              <span class="bar">
                <i style={{ transform: `scaleX(${s.count / highest})` }} />
              </span>
              {s.count}
            </dd>,
          ])}
        </dl>
      )}
      {of && (
        <p class="soft small">
          Half within {span(of.p50 * 1000)}, nine in ten within {span(of.p90 * 1000)}, 99 in 100 within{" "}
          {span(of.p99 * 1000)}
        </p>
      )}
    </div>
  );
}
