package io.github.fencepost;

/** A write that a resource rejected. Each method returns one that differs in one thing. */
public final class StaleWrite {
  private final String lock;
  private final long presented;
  private final long known;
  private final String resource;

  private StaleWrite(String lock, long presented, long known, String resource) {
    this.lock = lock;
    this.presented = presented;
    this.known = known;
    this.resource = resource;
  }

  /**
   * Returns a write under a lock.
   *
   * @param lock is its name
   * @return the write
   */
  public static StaleWrite of(String lock) {
    return new StaleWrite(lock, 0, 0, "");
  }

  /**
   * Says under which lock it was.
   *
   * @param name of the lock
   * @return the write
   */
  public StaleWrite lock(String name) {
    return new StaleWrite(name, presented, known, resource);
  }

  /**
   * Says which fence came with it.
   *
   * @param fence of the late holder
   * @return the write
   */
  public StaleWrite presented(long fence) {
    return new StaleWrite(lock, fence, known, resource);
  }

  /**
   * Says which fence the resource knows.
   *
   * @param fence is the greatest that it has seen
   * @return the write
   */
  public StaleWrite known(long fence) {
    return new StaleWrite(lock, presented, fence, resource);
  }

  /**
   * Names the resource.
   *
   * @param name of the resource, which is no secret
   * @return the write
   */
  public StaleWrite resource(String name) {
    return new StaleWrite(lock, presented, known, name);
  }

  /**
   * Returns the name of the lock.
   *
   * @return the name; empty if it is not known
   */
  public String lock() {
    return lock;
  }

  /**
   * Returns the fence of the late holder.
   *
   * @return the fence
   */
  public long presented() {
    return presented;
  }

  /**
   * Returns the greatest fence that the resource has seen.
   *
   * @return the fence
   */
  public long known() {
    return known;
  }

  /**
   * Returns what the lock protects.
   *
   * @return its name
   */
  public String resource() {
    return resource;
  }

  @Override
  public String toString() {
    return "the fence " + presented + " of " + lock + " is stale: " + known + " has written";
  }
}
