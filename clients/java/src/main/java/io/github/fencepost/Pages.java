package io.github.fencepost;

import com.google.gson.JsonObject;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;

/** Iterates over the locks of a list, page by page. */
final class Pages implements Iterator<LockInfo> {
  private final Fencepost client;
  private final Query query;
  private Iterator<LockInfo> page = List.<LockInfo>of().iterator();
  private String cursor = "";
  private boolean last;

  Pages(Fencepost client, Query query) {
    this.client = client;
    this.query = query;
  }

  @Override
  public boolean hasNext() {
    while (!page.hasNext() && !last) {
      JsonObject body = client.get(query.with("cursor", cursor).toString());
      page = Json.objects(body, "locks", LockInfo::new).iterator();
      cursor = Json.text(body, "next_cursor");
      last = cursor.isEmpty();
    }
    return page.hasNext();
  }

  @Override
  public LockInfo next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    return page.next();
  }
}
