import { useSignal } from "@preact/signals";
import { api, asked } from "../api/client";
import { Dialog } from "../parts/dialog";
import { Failed, Loading } from "../parts/signs";
import { second, useLive } from "../state/live";
import { Close } from "./close";
import { Revoke, type RevokeOf } from "./revoke";

export interface RevokeAtOf extends Pick<RevokeOf, "target" | "close" | "done"> {
  tenant: string;
  name: string;
}

/** The dialogs of a lock's page that revoke an entry, or close the lock instead, on a page that does not show the lock. */
export function RevokeAt({ tenant, name, target, close, done }: RevokeAtOf) {
  const path = { tenant, name };
  const {
    data: view,
    failure,
    refresh,
  } = useLive(`lock ${tenant}/${name}`, second, (ask) =>
    asked(api.GET("/admin/locks/{tenant}/{name}", { ...ask, params: { path, query: { limit: 100 } } })),
  );
  const closing = useSignal(false);
  if (closing.value) return <Close locks={name} tenant={tenant} done={done} close={close} />;
  if (!view) {
    return (
      <Dialog title={`Revoke ${target.holder}`} close={close}>
        <Failed failure={failure} />
        <Loading failure={failure} />
      </Dialog>
    );
  }
  const both = (): void => {
    refresh();
    done();
  };
  return (
    <Revoke
      target={target}
      view={view}
      done={both}
      close={() => !closing.value && close()}
      closeLock={() => (closing.value = true)}
    />
  );
}
