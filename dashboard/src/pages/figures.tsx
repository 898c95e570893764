import type { Schemas } from "../api/client";
import { Badge } from "../parts/signs";
import { many, span } from "../parts/words";

interface FiguresOf {
  figures: Schemas["AdminFigures"];
  /** Whether the lock is held: then it was granted, whatever the figures say. */
  held: boolean;
}

/** How long waits and holds of a lock took, and the TTL that these suggest. */
export function Figures({ figures, held }: FiguresOf) {
  return (
    <section class="stack" aria-labelledby="figures">
      <h2 id="figures">
        Statistics <span class="soft small">since this replica started, as far as it keeps them</span>
      </h2>
      {isEmpty(figures) ? <None held={held} /> : <Known figures={figures} />}
    </section>
  );
}

function isEmpty(f: Schemas["AdminFigures"]): boolean {
  return f.acquisitions + f.expirations + f.waits.length + f.holds.length === 0;
}

/** A replica has figures of so many locks and no more: without any, it cannot tell "never" from "forgotten". */
function None({ held }: { held: boolean }) {
  return (
    <p class="sheet pad soft">
      {held
        ? "No statistics: the lock was granted before this replica started, or the replica evicted them for other locks."
        : "No statistics: the lock was not granted since this replica started, or the replica evicted them for other locks."}
    </p>
  );
}

function Known({ figures }: { figures: Schemas["AdminFigures"] }) {
  return (
    <div class="columns">
      <Distribution name="Wait time" steps={figures.waits} of={figures.wait_seconds} none="No recorded grant." />
      <Distribution name="Hold time" steps={figures.holds} of={figures.hold_seconds} none="No recorded release." />
      <div class="sheet pad stack">
        <h3>Lease</h3>
        <p>
          {many(figures.acquisitions, "grant")},{" "}
          {figures.expirations > 0 ? (
            <Badge kind="harm" sign="⚠">
              {many(figures.expirations, "expired lease")}
            </Badge>
          ) : (
            "no expired lease"
          )}
        </p>
        {figures.recommended_ttl_seconds !== undefined && (
          <p>
            Recommended TTL: <b>{span(figures.recommended_ttl_seconds * 1000)}</b>
          </p>
        )}
        <p class="soft">{figures.recommended_ttl_reason}</p>
      </div>
    </div>
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
          p50 {span(of.p50 * 1000)}, p90 {span(of.p90 * 1000)}, p99 {span(of.p99 * 1000)}
        </p>
      )}
    </div>
  );
}
