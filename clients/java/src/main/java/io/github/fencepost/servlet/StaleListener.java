package io.github.fencepost.servlet;

import io.github.fencepost.StaleWrite;
import jakarta.servlet.http.HttpServletRequest;

/** Learns what a {@link FenceFilter} refused. */
@FunctionalInterface
public interface StaleListener {
  /**
   * Called before a stale request is answered: report it in another thread.
   *
   * @param request that is refused
   * @param write with the resource and both fences; to report it, say which lock it needs
   */
  void refused(HttpServletRequest request, StaleWrite write);
}
