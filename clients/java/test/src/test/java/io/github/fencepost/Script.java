package io.github.fencepost;

import static io.github.fencepost.Vector.includes;
import static io.github.fencepost.Vector.list;
import static io.github.fencepost.Vector.number;
import static io.github.fencepost.Vector.object;
import static io.github.fencepost.Vector.text;

import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.net.URI;
import java.net.URLDecoder;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/** The server of a vector: which requests must come, and their answers. */
final class Script {
  private final Vector vector;
  private final VirtualTime time;
  private final Consumer<String> fault;
  private final List<JsonElement> exchanges;
  private int next;
  private int answered; // requests by the exchange at next, which lasts
  private boolean over;

  Script(Vector vector, VirtualTime time, Consumer<String> fault) {
    this.vector = vector;
    this.time = time;
    this.fault = fault;
    exchanges = vector.server().asList();
  }

  /** Finds the exchange of a request, and compares the request with it. */
  ScriptedServer.Script take(HttpRequest request) {
    if (over) {
      return null;
    }
    pass(time.seconds());
    String is = request.method() + " " + request.uri();
    if (next >= exchanges.size()) {
      fault.accept("unexpected request " + is);
      return null;
    }
    JsonElement exchange = exchanges.get(next);
    JsonElement at = exchange.getAsJsonObject().get("at");
    if (lasts(exchange)) {
      at = exchange.getAsJsonObject().get("during");
      answered++;
    } else {
      next++;
    }
    String want = text(exchange, "request");
    if (!parts(want).equals(parts(is)) || !includes(at, time.seconds())) {
      fault.accept("request " + is + ", want " + want + " at " + at);
    }
    compareHeaders(request, exchange);
    compareBody(ScriptedServer.bodyOf(request), exchange);
    return answer(exchange.getAsJsonObject());
  }

  private static boolean lasts(JsonElement exchange) {
    return exchange.getAsJsonObject().has("during");
  }

  /** Leaves an exchange that lasts when its time is over. */
  private void pass(double at) {
    if (next < exchanges.size() && lasts(exchanges.get(next))) {
      JsonElement exchange = exchanges.get(next);
      if (at > list(exchange, "during").get(1).getAsDouble()) {
        leave(exchange);
      }
    }
  }

  private void leave(JsonElement exchange) {
    if (answered < Math.max(1, number(exchange, "least"))) {
      fault.accept(answered + " requests came: " + text(exchange, "request"));
    }
    answered = 0;
    next++;
  }

  /** Ends the script: what did not come is a fault. */
  void end() {
    if (next < exchanges.size() && lasts(exchanges.get(next))) {
      leave(exchanges.get(next));
    }
    for (; next < exchanges.size(); next++) {
      fault.accept("a request did not come: " + text(exchanges.get(next), "request"));
    }
    over = true;
  }

  /** Splits a method and URL, with the parameters of the query in order and decoded. */
  private static Map<String, String> parts(String request) {
    String method = request.substring(0, request.indexOf(' '));
    URI uri = URI.create(request.substring(request.indexOf(' ') + 1));
    Map<String, String> parts = new TreeMap<>();
    parts.put("", method + " " + uri.getHost() + uri.getPath());
    if (uri.getRawQuery() != null) {
      for (String parameter : uri.getRawQuery().split("&")) {
        String[] pair = parameter.split("=", 2);
        parts.put(pair[0], URLDecoder.decode(pair[1], StandardCharsets.UTF_8));
      }
    }
    return parts;
  }

  private void compareHeaders(HttpRequest request, JsonElement exchange) {
    Map<String, String> want = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    want.put("Authorization", "Bearer T");
    want.put("Idempotency-Key", text(exchange, "key"));
    want.put("Lock-Token", text(exchange, "token"));
    want.put("Last-Event-ID", "");
    want.put("traceparent", "");
    boolean sends = exchange.getAsJsonObject().has("send");
    want.put("Content-Type", sends ? "application/json" : "");
    JsonObject more = object(exchange, "headers");
    more.keySet().forEach(name -> want.put(name, text(more, name)));
    want.forEach((name, value) -> {
      String got = request.headers().firstValue(name).orElse("");
      if (!vector.matches(value, got)) {
        fault.accept(text(exchange, "request") + " has " + name + " " + got + ", want " + value);
      }
    });
  }

  private void compareBody(String sent, JsonElement exchange) {
    JsonElement want = exchange.getAsJsonObject().get("send");
    JsonElement got = sent.isEmpty() ? JsonNull.INSTANCE : JsonParser.parseString(sent);
    if (want == null ? !sent.isEmpty() : !vector.matches(want, got)) {
      fault.accept(text(exchange, "request") + " sends " + sent + ", want " + want);
    }
  }

  private ScriptedServer.Script answer(JsonObject exchange) {
    ScriptedServer.Script answer = new ScriptedServer.Script();
    String kind = text(exchange, "fault");
    answer.delay = number(exchange, "delay");
    answer.hangs = kind.equals("hang");
    answer.cut = kind.equals("cut");
    answer.cutBody = kind.equals("cut-body");
    answer.status = (int) number(exchange, "status");
    JsonObject headers = object(exchange, "answer");
    answer.headers = HttpHeaders.of(
        headers.keySet().stream().collect(
            Collectors.toMap(name -> name, name -> List.of(text(headers, name)))),
        (name, value) -> true);
    addPieces(answer, exchange);
    answer.ends = gaveUp -> ended(exchange, gaveUp);
    return answer;
  }

  private void addPieces(ScriptedServer.Script answer, JsonObject exchange) {
    if (exchange.has("stream")) {
      list(exchange, "stream").forEach(piece -> answer.pieces.add(new ScriptedServer.Piece(
          number(piece, "after"), text(piece, "text").getBytes(StandardCharsets.UTF_8))));
      return;
    }
    JsonElement body = vector.body(exchange.get("body"));
    String content = body.isJsonPrimitive() ? body.getAsString() : body.toString();
    byte[] whole = content.getBytes(StandardCharsets.UTF_8);
    int length = answer.cutBody ? whole.length / 2 : whole.length;
    answer.pieces.add(new ScriptedServer.Piece(0, Arrays.copyOf(whole, length)));
  }

  /** Compares whether the client waited for the answer. */
  private void ended(JsonObject exchange, boolean gaveUp) {
    JsonElement at = exchange.get("given_up");
    boolean hangs = text(exchange, "fault").equals("hang");
    if (gaveUp ? at == null && !hangs || !includes(at, time.seconds()) : at != null) {
      fault.accept(
          "given up: " + gaveUp + ", want " + at + ": " + text(exchange, "request"));
    }
  }
}
