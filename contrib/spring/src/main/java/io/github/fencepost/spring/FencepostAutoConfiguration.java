package io.github.fencepost.spring;

import io.github.fencepost.Fencepost;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.integration.support.locks.LockRegistry;

/** Makes a client and a lock registry where {@code fencepost.url} is set. */
@AutoConfiguration
@ConditionalOnProperty("fencepost.url")
@EnableConfigurationProperties(FencepostProperties.class)
public class FencepostAutoConfiguration {
  /** Returns the client, which the context closes. */
  @Bean
  @ConditionalOnMissingBean
  public Fencepost fencepost(FencepostProperties properties) {
    return new Fencepost(properties.url(), properties.token());
  }

  /** Returns the registry, unless the application has one. */
  @Bean
  @ConditionalOnMissingBean(LockRegistry.class)
  public FencepostLockRegistry fencepostLockRegistry(
      Fencepost fencepost, FencepostProperties properties) {
    return new FencepostLockRegistry(fencepost, properties.prefix(), properties.ttl());
  }
}
