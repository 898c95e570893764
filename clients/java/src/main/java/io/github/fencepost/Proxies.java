package io.github.fencepost;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.SocketAddress;
import java.net.URI;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Selects the proxy of the environment, as clients in other languages do, or else the one of Java's
 * system properties. A server on this machine has none.
 */
final class Proxies extends ProxySelector {
  private final Map<String, String> environment;

  Proxies(Map<String, String> environment) {
    this.environment = environment;
  }

  @Override
  public List<Proxy> select(URI uri) {
    String host = uri.getHost().toLowerCase(Locale.ROOT);
    if (host.matches("(.*\\.)?localhost|127(\\.\\d+){3}|\\[::1]|\\[0:0:0:0:0:0:0:1]")) {
      return List.of(Proxy.NO_PROXY);
    }
    String address = variable(uri.getScheme() + "_proxy");
    if (address.isEmpty()) {
      ProxySelector properties = ProxySelector.getDefault();
      return properties == null ? List.of(Proxy.NO_PROXY) : properties.select(uri);
    }
    return List.of(isDirect(host) ? Proxy.NO_PROXY : proxy(address));
  }

  private boolean isDirect(String host) {
    for (String name : variable("no_proxy").toLowerCase(Locale.ROOT).split("[\\s,]+")) {
      String domain = name.replaceAll("^\\*?\\.|:\\d+$", "");
      if (name.equals("*") || host.equals(domain)
          || !domain.isEmpty() && host.endsWith("." + domain)) {
        return true;
      }
    }
    return false;
  }

  private static Proxy proxy(String address) {
    URI uri = URI.create(address.contains("://") ? address : "http://" + address);
    int port = uri.getPort() < 0 ? 80 : uri.getPort();
    return new Proxy(Proxy.Type.HTTP, InetSocketAddress.createUnresolved(uri.getHost(), port));
  }

  private String variable(String name) {
    String value = environment.get(name);
    value = value == null ? environment.get(name.toUpperCase(Locale.ROOT)) : value;
    return value == null ? "" : value.strip();
  }

  @Override
  public void connectFailed(URI uri, SocketAddress address, IOException why) {}
}
