package io.github.fencepost.servlet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The filter does what clients/vectors/http says, like the guards of other languages. */
class FenceFilterTest {
  @TestFactory
  List<DynamicTest> tomcat() throws IOException {
    return cases(TomcatService::new);
  }

  @TestFactory
  List<DynamicTest> spring() throws IOException {
    return cases(SpringService::new);
  }

  private static List<DynamicTest> cases(Service.Start start) throws IOException {
    String text = Files.readString(Paths.get("..", "..", "vectors", "http", "fence.json"));
    List<DynamicTest> tests = new ArrayList<>();
    for (JsonElement each : JsonParser.parseString(text).getAsJsonArray()) {
      JsonObject one = each.getAsJsonObject();
      String name = one.get("name").getAsString();
      tests.add(DynamicTest.dynamicTest(name, () -> play(one, start)));
    }
    assertTrue(tests.size() >= 8, "there are " + tests.size() + " cases");
    return tests;
  }

  @TestFactory
  List<DynamicTest> everySpellingOfAPathIsOneResource() {
    return Stream.of("/accounts/7", "/accounts/7/", "//accounts//7", "/accounts/7;jsessionid=1",
        "/accounts;a=b/7", "/accounts/%37", "/accounts/x/../7", "/accounts/./7",
        "http://127.0.0.1/accounts/7")
        .map(path -> DynamicTest.dynamicTest(path, () -> {
          AtomicInteger ran = new AtomicInteger();
          FenceFilter filter = new FenceFilter(FenceStore.inMemory());
          try (TomcatService service = new TomcatService(filter, ran::incrementAndGet)) {
            service.sendLine("PUT /accounts/7", 9);
            assertEquals("409", service.sendLine("PUT " + path, 8));
            assertEquals(1, ran.get());
          }
        })).collect(Collectors.toList());
  }

  private static void play(JsonObject one, Service.Start start) throws Exception {
    AtomicInteger ran = new AtomicInteger();
    List<String> stale = new ArrayList<>();
    FenceFilter filter = filter(one).onStale(
        (request, write) -> stale.add(write.presented() + " " + write.known()));
    try (Service service = start.start(filter, ran::incrementAndGet)) {
      for (JsonElement each : one.getAsJsonArray("requests")) {
        ran.set(0);
        stale.clear();
        JsonObject wanted = each.getAsJsonObject();
        String[] send = wanted.get("send").getAsString().split(" ");
        JsonArray fences = wanted.has("fence") ? wanted.getAsJsonArray("fence") : new JsonArray();
        Service.Answer answer = service.send(send[0], send[1], fences);
        check(wanted, answer, ran.get());
        List<String> refused = wanted.has("known")
            ? List.of(wanted.get("presented") + " " + wanted.get("known")) : List.of();
        assertEquals(refused, stale, wanted.toString());
      }
    }
  }

  private static FenceFilter filter(JsonObject one) {
    FenceFilter filter = new FenceFilter(one.has("fails") ? (resource, fence) -> {
      throw new IOException("the store does not answer");
    } : FenceStore.inMemory());
    if (one.has("optional")) {
      filter = filter.optional();
    }
    return one.has("resource") ? filter.resource(FenceFilterTest::account) : filter;
  }

  private static String account(HttpServletRequest request) {
    String[] path = request.getRequestURI().split("/");
    return path[1].equals("accounts") ? path[2] : null;
  }

  private static void check(JsonObject wanted, Service.Answer answer, int ran) {
    String at = wanted + ": " + answer.status + " " + answer.body;
    int status = wanted.get("status").getAsInt();
    assertTrue(answer.status == status || status == 500 && answer.status > 500, at);
    assertEquals(status == 200 ? 1 : 0, ran, at);
    if (wanted.has("handler")) {
      assertEquals(wanted.get("handler").getAsString(), answer.body, at);
    }
    if (wanted.has("code")) {
      assertTrue(answer.type.startsWith("application/problem+json"), at + " " + answer.type);
      JsonObject problem = JsonParser.parseString(answer.body).getAsJsonObject();
      assertEquals(wanted.get("status"), problem.get("status"), at);
      assertEquals(wanted.get("code"), problem.get("code"), at);
      assertEquals(wanted.get("presented"), problem.get("fence_presented"), at);
      assertEquals(wanted.get("known"), problem.get("fence_known"), at);
    }
  }
}
