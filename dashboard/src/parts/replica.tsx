import { api, asked } from "../api/client";
import { useLive } from "../state/live";
import { seesAll } from "../state/session";

/** The host or pod of a replica and its id: where to find its log. Only operators of all tenants see hosts. */
export function Replica({ id }: { id: string }) {
  return seesAll() ? <Hosted id={id} /> : <>replica {id}</>;
}

function Hosted({ id }: { id: string }) {
  const { data } = useLive("replicas", 30_000, (ask) => asked(api.GET("/admin/overview", ask)));
  const host = data?.replicas?.find((r) => r.replica === id)?.host;
  return <>{host ? `${host}, replica ${id}` : `replica ${id}`}</>;
}
