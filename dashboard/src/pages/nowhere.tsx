import { Calm, Head } from "../parts/signs";
import { href } from "../state/route";

/** What is said of an address that leads to no page. */
export function Nowhere() {
  return (
    <>
      <Head title="No such page" />
      <div class="sheet">
        <Calm title="No page at this address">
          Check the address, or continue with <a href={href([])}>Overview</a> · <a href={href(["locks"])}>Locks</a>
        </Calm>
      </div>
    </>
  );
}
