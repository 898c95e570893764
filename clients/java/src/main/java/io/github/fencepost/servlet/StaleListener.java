package io.github.fencepost.servlet;

import jakarta.servlet.http.HttpServletRequest;

/** Learns what a {@link FenceFilter} refused. */
@FunctionalInterface
public interface StaleListener {
  /**
   * Called before a stale request is answered: report it in another thread.
   *
   * @param request that is refused
   * @param resource of the request
   * @param presented fence of the request
   * @param known fence that a later holder has sent
   */
  void refused(HttpServletRequest request, String resource, long presented, long known);
}
