package io.github.fencepost;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What is acquired: a lock, or a set. */
final class Target {
  final String name; // of a set, all names
  final List<Claim> claims; // empty if it is one lock
  final int k; // how many of the claims suffice; 0 is all

  private Target(String name, List<Claim> claims, int k) {
    this.name = name;
    this.claims = claims;
    this.k = k;
  }

  static Target of(String name) {
    return new Target(name, List.of(), 0);
  }

  static Target of(List<Claim> claims) {
    if (claims.isEmpty()) {
      throw new IllegalArgumentException("a set has at least one lock");
    }
    return new Target(names(claims.stream().map(Claim::name)), List.copyOf(claims), 0);
  }

  static Target any(List<Claim> claims, int k) {
    if (k < 1) {
      throw FencepostException.invalid("k is not positive");
    }
    return new Target(of(claims).name, List.copyOf(claims), k);
  }

  /** Returns what is held after a grant of these locks. */
  Target kept(Set<String> locks) {
    return k == 0 ? this : new Target(names(locks.stream()), claims, k);
  }

  private static String names(Stream<String> names) {
    return names.sorted().collect(Collectors.joining(","));
  }

  /** Where the lock or set is acquired. */
  String path() {
    return claims.isEmpty() ? pathOf(name) : "/locksets";
  }

  /** Where the entry is waited for. */
  String entryPath(String id) {
    return path() + (claims.isEmpty() ? "/entries/" : "/") + escape(id);
  }

  /** Where the entry is released, and with /renew renewed. */
  String heldPath(String id) {
    return claims.isEmpty() ? path() : entryPath(id);
  }

  static String pathOf(String lock) {
    if (lock.isEmpty() || lock.equals(".") || lock.equals("..")) { // URLs read another path
      throw FencepostException.of("invalid_name", "\"" + lock + "\" is no name");
    }
    return "/locks/" + escape(lock);
  }

  /** Escapes what is no part of a segment of a path. */
  private static String escape(String text) {
    StringBuilder escaped = new StringBuilder();
    for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
      boolean plain = b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z';
      if (plain || "-._~$&+=:@".indexOf(b) >= 0) {
        escaped.append((char) b);
      } else {
        escaped.append(String.format("%%%02X", b & 0xff));
      }
    }
    return escaped.toString();
  }
}
