import type { Schemas } from "../api/client";
import { Table } from "../parts/table";
import { Since } from "../parts/time";
import { span } from "../parts/words";

const ends: Record<string, string> = { expired: "expired", released: "was released", revoked: "was revoked" };

const Unknown = () => <span class="soft">–</span>;

/** Reports of resources that rejected a write: how late the holder was, and which TTL is enough. */
export function StaleWrites({ all }: { all: Schemas["ReportedStaleWrite"][] }) {
  return (
    <section class="stack" aria-labelledby="stale-writes">
      <h2 id="stale-writes">Stale writes</h2>
      <Table
        caption="Writes that a resource rejected because their fence was old"
        columns={["Reported", "Resource", "Holder", "Late by", "Enough TTL"]}
      >
        {all.map((w, i) => (
          <tr key={i}>
            <td class="whole">
              <Since at={w.at} ago />
            </td>
            <td class="name">
              {w.resource}
              <span class="under">had seen fence {w.fence_known}</span>
            </td>
            <td class="name">
              {w.holder ?? "unknown"}
              <span class="under">wrote with fence {w.fence_presented}</span>
            </td>
            <td class="whole">
              {w.late_seconds === undefined ? <Unknown /> : span(w.late_seconds * 1000)}
              {w.ended && <span class="under">after its hold {ends[w.ended] ?? w.ended}</span>}
            </td>
            <td class="whole">
              {w.enough_ttl_seconds === undefined ? <Unknown /> : span(w.enough_ttl_seconds * 1000)}
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}
