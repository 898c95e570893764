package io.github.fencepost;

import java.util.List;

/** Selects events. Each method returns a filter that differs in one thing. */
public final class EventFilter {
  private final List<String> types;
  private final List<String> locks;
  private final String after;

  private EventFilter(List<String> types, List<String> locks, String after) {
    this.types = List.copyOf(types);
    this.locks = List.copyOf(locks);
    this.after = after;
  }

  /**
   * Selects all events of the tenant, from now on.
   *
   * @return the filter
   */
  public static EventFilter all() {
    return new EventFilter(List.of(), List.of(), "");
  }

  /**
   * Selects types. {@code events.missed} always comes.
   *
   * @param types of events
   * @return the filter
   */
  public EventFilter types(String... types) {
    return new EventFilter(List.of(types), locks, after);
  }

  /**
   * Selects locks.
   *
   * @param patterns of names, up to 8, each with at most one star
   * @return the filter
   */
  public EventFilter locks(String... patterns) {
    return new EventFilter(types, List.of(patterns), after);
  }

  /**
   * Resumes after an event.
   *
   * @param id of the last event that you have dealt with
   * @return the filter
   */
  public EventFilter after(String id) {
    return new EventFilter(types, locks, id);
  }

  String after() {
    return after;
  }

  String path() {
    return Query.of("/events")
        .with("types", String.join(",", types)).with("locks", String.join(",", locks)).toString();
  }
}
