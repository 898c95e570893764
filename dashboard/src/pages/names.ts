import { href } from "../state/route";

/** The address of a lock's own page. */
export function lockPage(of: { tenant: string; name: string }): string {
  return href(["locks", of.tenant, of.name]);
}
