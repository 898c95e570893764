import { href } from "../state/route";

/** The address of a lock's own page. */
export function lockPage(of: { tenant: string; name: string }): string {
  return href(["locks", of.tenant, of.name]);
}

/** The address of what one holder holds and waits for. */
export function holderPage(tenant: string, holder: string): string {
  return href(["holders"], { tenant, holder });
}
