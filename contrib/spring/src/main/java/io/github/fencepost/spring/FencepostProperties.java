package io.github.fencepost.spring;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The settings of the auto-configuration.
 *
 * @param url of the servers; several with commas
 * @param token of the bearer
 * @param prefix of the names of the locks
 * @param ttl of the lease
 */
@ConfigurationProperties("fencepost")
public record FencepostProperties(
    String url,
    String token,
    @DefaultValue("spring:") String prefix,
    @DefaultValue("30s") Duration ttl) {

  /** Leaves the token out. */
  @Override
  public String toString() {
    return "FencepostProperties[url=" + url + ", prefix=" + prefix + ", ttl=" + ttl + "]";
  }
}
