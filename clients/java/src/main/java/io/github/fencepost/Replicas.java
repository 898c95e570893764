package io.github.fencepost;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/** The base URLs of a client: all calls use one of them until it fails, then the next. */
final class Replicas {
  private static final System.Logger LOG = System.getLogger(Replicas.class.getPackageName());

  final List<String> urls;
  private final AtomicInteger current = new AtomicInteger();
  private final AtomicBoolean failing = new AtomicBoolean(); // none has answered since a warning
  private final Clock clock;

  Replicas(List<String> urls, Clock clock) {
    this.urls = List.copyOf(urls);
    this.clock = clock;
  }

  /** Returns the base URLs of texts. One text may name several, with commas. */
  static List<String> bases(String... texts) {
    List<String> urls = new ArrayList<>();
    for (String url : text(texts).split(",")) {
      if (url.isBlank()) {
        continue;
      } else if (!isBase(url.strip())) { // it may have a password, or be one
        throw new IllegalArgumentException("the base URL " + (urls.size() + 1)
            + " is not http or https, a host, and perhaps a path");
      }
      urls.add(url.strip().replaceAll("/+$", ""));
    }
    if (urls.isEmpty()) {
      throw new IllegalArgumentException("there is no base URL: is FENCEPOST_URL set?");
    }
    return urls;
  }

  private static String text(String... texts) {
    return Arrays.stream(texts).filter(Objects::nonNull).collect(Collectors.joining(","));
  }

  private static boolean isBase(String url) {
    try {
      URI uri = new URI(url);
      return uri.getScheme() != null && uri.getScheme().matches("(?i)https?")
          && uri.getHost() != null && uri.getPort() < 65_536 && uri.getPort() != 0
          && uri.getRawUserInfo() == null && uri.getRawQuery() == null
          && uri.getRawFragment() == null;
    } catch (URISyntaxException e) {
      return false;
    }
  }

  int current() {
    return current.get();
  }

  void answered() {
    failing.set(false);
  }

  /** Passes over a URL, unless another call has done so. The first failure of several warns. */
  void fail(int at, Again why) {
    current.compareAndSet(at, (at + 1) % urls.size());
    if (!why.usual && failing.compareAndSet(false, true)) {
      clock.execute(() -> LOG.log(System.Logger.Level.WARNING,
          "{0} fails, and the client tries again: {1}", urls.get(at), why.problem.getMessage()));
    }
  }
}
