package io.github.fencepost.servlet;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Keeps the greatest fence of each resource, at least as durable as the data. */
@FunctionalInterface
public interface FenceStore {
  /**
   * Stores the fence if it is greater than that of the resource. It is atomic.
   *
   * @param resource that a request reads or writes
   * @param fence of the request
   * @return the greatest fence of the resource
   * @throws Exception if the store fails; the request does not reach its servlet
   */
  long raise(String resource, long fence) throws Exception;

  /**
   * Returns a store for tests, and for a single process whose data does not outlive it. It loses
   * all fences at a restart, knows none of other processes, and grows with the number of resources.
   *
   * @return the store
   */
  static FenceStore inMemory() {
    Map<String, Long> fences = new ConcurrentHashMap<>();
    return (resource, fence) -> fences.merge(resource, fence, Math::max);
  }
}
