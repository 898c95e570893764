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
        How it has been <span class="soft small">as far as this replica remembers</span>
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
        ? "This replica has no figures of it: it was granted before the replica started, or they were forgotten to make room for those of other locks."
        : "This replica has no figures of it: nobody was granted it since the replica started, or they were forgotten to make room for those of other locks."}
    </p>
  );
}

function Known({ figures }: { figures: Schemas["AdminFigures"] }) {
  return (
    <div class="columns">
      <Distribution name="Waits" steps={figures.waits} of={figures.wait_seconds} none="No grant is remembered." />
      <Distribution name="Holds" steps={figures.holds} of={figures.hold_seconds} none="No end is remembered." />
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
