import com.amazonaws.services.dynamodbv2.*;
import java.io.*;
import java.net.URI;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.*;
import software.amazon.awssdk.auth.credentials.*;
import software.amazon.awssdk.http.apache.ApacheHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.*;

/** A client of AWS's lock client for DynamoDB, with heartbeats and a session monitor. */
class Worker {
  public static void main(String[] args) throws Exception {
    long ttl = Long.parseLong(System.getenv("FENCETEST_TTL_MS"));
    DynamoDbClient dynamo = DynamoDbClient.builder().httpClient(ApacheHttpClient.create())
        .endpointOverride(URI.create("http://" + System.getenv("FENCETEST_SERVER")))
        .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("a", "b")))
        .region(Region.US_EAST_1).build();
    ProvisionedThroughput throughput = ProvisionedThroughput.builder()
        .readCapacityUnits(100L).writeCapacityUnits(100L).build();
    try {
      AmazonDynamoDBLockClient.createLockTableInDynamoDB(
          CreateDynamoDBTableOptions.builder(dynamo, throughput, "locks").build());
    } catch (ResourceInUseException e) { /* another worker has made it */ }
    AmazonDynamoDBLockClient client = new AmazonDynamoDBLockClient(
        AmazonDynamoDBLockClientOptions.builder(dynamo, "locks").withTimeUnit(TimeUnit.MILLISECONDS)
            .withLeaseDuration(ttl).withHeartbeatPeriod(ttl / 3)
            .withCreateHeartbeatBackgroundThread(true).build());
    say("ready", "");
    Optional<LockItem> lock = Optional.empty();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      try {
        if (field(line, "do").equals("acquire")) { // waits for a lease's length, and for more
          long more = Math.max(0, Long.parseLong(field(line, "wait_ms")) - ttl);
          lock = client.tryAcquireLock(AcquireLockOptions.builder(field(line, "name"))
              .withTimeUnit(TimeUnit.MILLISECONDS).withAdditionalTimeToWaitForLock(more)
              .withSessionMonitor(ttl * 5 / 6, Optional.of(() -> say("lost", ""))).build());
          say(lock.isPresent() ? "held" : "not_held", "");
        } else if (field(line, "do").equals("check")) {
          say(lock.get().isExpired() ? "lost" : "held", "");
        } else {
          say(client.releaseLock(lock.get()) ? "released" : "lost", "");
        }
      } catch (Exception e) {
        say("error", ",\"text\":\"" + e.toString().replaceAll("[\"\\\\\\s]+", " ") + "\"");
      }
    }
    Runtime.getRuntime().halt(0);
  }
  static void say(String event, String more) {
    System.out.println("{\"event\":\"" + event + "\"" + more + "}");
  }
  static String field(String line, String name) {
    Matcher m = Pattern.compile("\"" + name + "\":\\s*\"?([^\",}]*)").matcher(line);
    return m.find() ? m.group(1) : "";
  }
}
