package io.github.fencepost;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.function.UnaryOperator;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Verifies what servers deliver, as Standard Webhooks 1.0 says. */
public final class Webhooks {
  private static final Duration TOLERANCE = Duration.ofMinutes(5);
  private static final int LEAST_SECRET = 24; // bytes

  private Webhooks() {}

  /**
   * Returns the event of a delivery that has a signature of one of the secrets, and is not older or
   * newer than five minutes. While you rotate a secret, give both.
   *
   * <p>A delivery may come again, also from an attacker within the five minutes: pass over an event
   * whose {@code webhook-id} you have seen.
   *
   * @param header returns a header of the delivery by its name, or null
   * @param body as it came, before anything parses it
   * @param secrets of the subscription or the callbacks
   * @return the event
   * @throws FencepostException.BadWebhook if the delivery is not one of the sender; answer with 400
   */
  public static Event verify(UnaryOperator<String> header, byte[] body, String... secrets) {
    return verify(Instant.now(), header, body, secrets);
  }

  static Event verify(
      Instant now, UnaryOperator<String> header, byte[] body, String... secrets) {
    String id = orEmpty(header.apply("webhook-id"));
    String timestamp = orEmpty(header.apply("webhook-timestamp"));
    if (!id.matches("[A-Za-z0-9_-]{1,64}")) { // its dots could move what is signed
      throw bad("the id is not valid");
    } else if (!isOf(now, timestamp)) {
      throw bad("the timestamp is not of now");
    }
    String signatures = orEmpty(header.apply("webhook-signature"));
    for (String secret : secrets) {
      if (signs(secret, id + "." + timestamp + ".", body, signatures)) {
        return event(body);
      }
    }
    throw bad("no signature is of these secrets");
  }

  private static Event event(byte[] body) {
    Event event = Event.parse(body);
    if (event == null || !event.isWhole()) {
      throw bad("the delivery has no event");
    }
    return event;
  }

  private static String orEmpty(String header) {
    return header == null ? "" : header;
  }

  private static boolean isOf(Instant now, String timestamp) {
    return timestamp.matches("[0-9]{1,18}")
        && Math.abs(now.getEpochSecond() - Long.parseLong(timestamp)) <= TOLERANCE.getSeconds();
  }

  private static boolean signs(String secret, String head, byte[] body, String signatures) {
    byte[] want = ("v1," + sign(key(secret), head, body)).getBytes(StandardCharsets.UTF_8);
    boolean found = false;
    for (String signature : signatures.trim().split("\\s+")) {
      found |= MessageDigest.isEqual(signature.getBytes(StandardCharsets.UTF_8), want);
    }
    return found;
  }

  private static byte[] key(String secret) {
    try {
      String text = secret.startsWith("whsec_") ? secret.substring(6) : secret;
      byte[] key = Base64.getDecoder().decode(text);
      if (key.length >= LEAST_SECRET) {
        return key;
      }
    } catch (IllegalArgumentException e) {
      // Its message may have a part of the secret.
    }
    throw bad("a secret is not valid");
  }

  private static String sign(byte[] key, String head, byte[] body) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(key, "HmacSHA256"));
      mac.update(head.getBytes(StandardCharsets.UTF_8));
      return Base64.getEncoder().encodeToString(mac.doFinal(body));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e); // each Java has this algorithm
    }
  }

  private static FencepostException bad(String why) {
    return FencepostException.of("bad_webhook", why);
  }
}
