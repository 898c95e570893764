package io.github.fencepost.servlet;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import java.io.IOException;

/** A service behind a filter. It answers with the fence that the filter gives it, or 0. */
interface Service extends AutoCloseable {
  Answer send(String method, String path, JsonArray fences) throws Exception;

  @Override
  void close() throws IOException;

  /** What the service answered. */
  final class Answer {
    final int status;
    final String type;
    final String body;

    Answer(int status, String type, String body) {
      this.status = status;
      this.type = type;
      this.body = body;
    }
  }

  /** Starts a service. */
  interface Start {
    Service start(FenceFilter filter, Runnable ran) throws Exception;
  }

  static String[] texts(JsonArray fences) {
    String[] texts = new String[fences.size()];
    int n = 0;
    for (JsonElement fence : fences) {
      texts[n++] = fence.getAsString();
    }
    return texts;
  }
}
