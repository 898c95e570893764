package io.github.fencepost.servlet;

import io.github.fencepost.StaleWrite;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * Checks the fence of requests, before their servlet or controller runs. The holder sends its fence
 * with each request; the filter keeps the greatest one of each resource.
 *
 * <p>A request can still be overtaken between the check and what its servlet writes. The attribute
 * {@link #FENCE} has the fence, if any: compare it again in the transaction that writes.
 */
public final class FenceFilter implements Filter {
  /** Attribute of a request with its fence, a {@link Long}. */
  public static final String FENCE = "io.github.fencepost.fence";

  private static final Set<String> SAFE = Set.of("GET", "HEAD", "OPTIONS");
  private static final Pattern FORMAT = Pattern.compile("[1-9][0-9]{0,15}");
  private static final long MAX = (1L << 53) - 1;

  private final FenceStore store;
  private final Function<HttpServletRequest, String> resource;
  private final boolean optional;
  private final StaleListener onStale;

  /**
   * Makes a filter whose resource is the path, however it is spelled: escaped or not, with
   * parameters, repeated slashes, a slash at its end, or a host. It needs a fence for all requests
   * but {@code GET}, {@code HEAD} and {@code OPTIONS}.
   *
   * @param store that keeps the fences
   */
  public FenceFilter(FenceStore store) {
    this(store, FenceFilter::path, false, (request, write) -> {});
  }

  private FenceFilter(
      FenceStore store,
      Function<HttpServletRequest, String> resource,
      boolean optional,
      StaleListener onStale) {
    this.store = Objects.requireNonNull(store);
    this.resource = Objects.requireNonNull(resource);
    this.optional = optional;
    this.onStale = Objects.requireNonNull(onStale);
  }

  /**
   * Returns a filter for resources of yours. All paths to what one lock protects need the same one:
   * name it if the routes ignore case, or two of them write the same.
   *
   * @param named returns what a request reads or writes, or null for what is not checked
   * @return the filter
   */
  public FenceFilter resource(Function<HttpServletRequest, String> named) {
    return new FenceFilter(store, named, optional, onStale);
  }

  /**
   * Returns a filter that lets writes without a fence pass.
   *
   * @return the filter
   */
  public FenceFilter optional() {
    return new FenceFilter(store, resource, true, onStale);
  }

  /**
   * Returns a filter that calls a listener when it refuses a stale request.
   *
   * @param listener that reports the request
   * @return the filter
   */
  public FenceFilter onStale(StaleListener listener) {
    return new FenceFilter(store, resource, optional, listener);
  }

  @Override
  public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    if (admits((HttpServletRequest) request, (HttpServletResponse) response)) {
      chain.doFilter(request, response);
    }
  }

  /** Containers unescape the path, and drop its parameters. Routes skip slashes. */
  private static String path(HttpServletRequest request) {
    String rest = request.getPathInfo();
    String path = request.getContextPath() + request.getServletPath() + (rest == null ? "" : rest);
    return path.replaceAll("/+", "/").replaceAll("(?<=.)/$", "");
  }

  /** Returns whether the servlet may run. If not, the request is answered. */
  private boolean admits(HttpServletRequest request, HttpServletResponse response)
      throws IOException, ServletException {
    String key = resource.apply(request);
    String text = String.join(",", Collections.list(request.getHeaders("Fence")));
    boolean without = request.getHeader("Fence") == null;
    if (key == null || key.isEmpty()
        || without && (optional || SAFE.contains(request.getMethod()))) {
      return true;
    }
    if (without) {
      return refuse(response, 428, "Precondition Required", "fence_required",
          "A write needs the header Fence: the fence of the lock that its client holds.", "");
    }
    if (!FORMAT.matcher(text).matches() || Long.parseLong(text) > MAX) {
      return refuse(response, 400, "Bad Request", "invalid_fence",
          "The header Fence is one positive integer below 2^53.", "");
    }
    return isGreatest(request, response, key, Long.parseLong(text));
  }

  private boolean isGreatest(
      HttpServletRequest request, HttpServletResponse response, String key, long fence)
      throws IOException, ServletException {
    long known = raise(key, fence);
    if (known <= fence) {
      request.setAttribute(FENCE, fence);
      return true;
    }
    onStale.refused(
        request, StaleWrite.of("").resource(key).presented(fence).known(known));
    String detail = "The request has the fence " + fence + ", and a later holder has sent " + known
        + ". The client does not hold the lock.";
    String fields = ",\"fence_presented\":" + fence + ",\"fence_known\":" + known;
    return refuse(response, 409, "Conflict", "stale_fence", detail, fields);
  }

  private long raise(String key, long fence) throws ServletException {
    try {
      return store.raise(key, fence);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ServletException(e);
    } catch (Exception e) {
      throw new ServletException("the fence cannot be compared", e);
    }
  }

  private static boolean refuse(
      HttpServletResponse response, int status, String title, String code, String detail,
      String fields)
      throws IOException {
    String problem = String.format(
        "{\"title\":\"%s\",\"status\":%d,\"detail\":\"%s\",\"code\":\"%s\"%s}",
        title, status, detail, code, fields);
    response.setStatus(status);
    response.setContentType("application/problem+json");
    response.getOutputStream().write(problem.getBytes(StandardCharsets.UTF_8));
    return false;
  }
}
