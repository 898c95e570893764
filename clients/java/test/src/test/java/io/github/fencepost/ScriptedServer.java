package io.github.fencepost;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.Authenticator;
import java.net.CookieHandler;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.function.Consumer;
import java.util.function.Function;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;

/** An HTTP client whose servers answer in virtual time, as a script says. */
final class ScriptedServer extends HttpClient {
  /** How one request is answered. */
  static final class Script {
    double delay;
    boolean hangs;
    boolean cut; // without an answer
    boolean cutBody; // after the pieces
    int status;
    HttpHeaders headers;
    final Deque<Piece> pieces = new ArrayDeque<>();
    Consumer<Boolean> ends; // gets whether the client gave up before the answer
  }

  static final class Piece {
    final double after;
    final byte[] text;

    Piece(double after, byte[] text) {
      this.after = after;
      this.text = text;
    }
  }

  private final VirtualTime time;
  private final Function<HttpRequest, Script> answers; // null hangs without an end

  ScriptedServer(VirtualTime time, Function<HttpRequest, Script> answers) {
    this.time = time;
    this.answers = answers;
  }

  /** Returns the body of a request. */
  static String bodyOf(HttpRequest request) {
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    request.bodyPublisher().ifPresent(body -> body.subscribe(new Flow.Subscriber<>() {
      @Override
      public void onSubscribe(Flow.Subscription subscription) {
        subscription.request(Long.MAX_VALUE);
      }

      @Override
      public void onNext(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        text.writeBytes(bytes);
      }

      @Override
      public void onError(Throwable failure) {
        throw new AssertionError(failure);
      }

      @Override
      public void onComplete() {}
    }));
    return text.toString(StandardCharsets.UTF_8);
  }

  @Override
  public <T> CompletableFuture<HttpResponse<T>> sendAsync(
      HttpRequest request, HttpResponse.BodyHandler<T> handler) {
    Script script = answers.apply(request);
    Exchange<T> exchange = new Exchange<>(request, handler, script);
    if (script != null && !script.hangs) {
      time.after(VirtualTime.nanos(script.delay), exchange::answer);
    }
    return exchange;
  }

  private final class Exchange<T> extends CompletableFuture<HttpResponse<T>>
      implements Flow.Subscription, HttpResponse<T>, HttpResponse.ResponseInfo {
    private final HttpRequest request;
    private final HttpResponse.BodyHandler<T> handler;
    private final Script script;
    private HttpResponse.BodySubscriber<T> reader;
    private boolean answered;
    private boolean cancelled;
    private boolean asked;
    private boolean due; // the next piece is
    private T body;

    Exchange(HttpRequest request, HttpResponse.BodyHandler<T> handler, Script script) {
      this.request = request;
      this.handler = handler;
      this.script = script;
    }

    @Override
    public boolean cancel(boolean mayInterrupt) {
      boolean first = super.cancel(mayInterrupt);
      if (first) {
        cancelled = true;
        if (script != null && !answered) {
          script.ends.accept(true);
        }
      }
      return first;
    }

    void answer() {
      if (cancelled) {
        return;
      }
      answered = true;
      script.ends.accept(false);
      if (script.cut) {
        completeExceptionally(new IOException("connection reset"));
        return;
      }
      reader = handler.apply(this);
      reader.getBody().whenComplete((text, failure) -> {
        if (failure == null) {
          body = text;
          complete(this);
        } else {
          completeExceptionally(failure);
        }
      });
      reader.onSubscribe(this);
      prepare();
    }

    private void prepare() {
      double after = script.pieces.isEmpty() ? 0 : script.pieces.peek().after;
      if (after == 0) { // it comes with the piece before
        arrive();
      } else {
        time.after(VirtualTime.nanos(after), this::arrive);
      }
    }

    private void arrive() {
      due = true;
      deliver();
    }

    private void deliver() {
      if (cancelled || !due) {
        return;
      }
      if (script.pieces.isEmpty() && script.cutBody) {
        cancelled = true;
        reader.onError(new IOException("connection reset"));
      } else if (script.pieces.isEmpty()) {
        cancelled = true;
        reader.onComplete();
      } else if (asked) {
        due = false;
        asked = false;
        byte[] text = script.pieces.remove().text;
        if (text.length == 0) {
          asked = true;
        } else {
          reader.onNext(List.of(ByteBuffer.wrap(text)));
        }
        prepare();
      }
    }

    @Override
    public void request(long n) {
      asked = true;
      deliver();
    }

    @Override
    public void cancel() {
      cancelled = true;
    }

    @Override
    public int statusCode() {
      return script.status;
    }

    @Override
    public HttpHeaders headers() {
      return script.headers;
    }

    @Override
    public T body() {
      return body;
    }

    @Override
    public HttpRequest request() {
      return request;
    }

    @Override
    public URI uri() {
      return request.uri();
    }

    @Override
    public Optional<HttpResponse<T>> previousResponse() {
      return Optional.empty();
    }

    @Override
    public Optional<SSLSession> sslSession() {
      return Optional.empty();
    }

    @Override
    public Version version() {
      return Version.HTTP_1_1;
    }
  }

  @Override
  public <T> CompletableFuture<HttpResponse<T>> sendAsync(
      HttpRequest request, HttpResponse.BodyHandler<T> handler,
      HttpResponse.PushPromiseHandler<T> push) {
    throw new UnsupportedOperationException();
  }

  @Override
  public <T> HttpResponse<T> send(HttpRequest request, HttpResponse.BodyHandler<T> handler)
      throws IOException, InterruptedException {
    CompletableFuture<HttpResponse<T>> exchange = sendAsync(request, handler);
    try {
      return time.await(exchange);
    } catch (InterruptedException e) {
      exchange.cancel(true);
      throw e;
    } catch (ExecutionException e) {
      throw new IOException(e.getCause());
    }
  }

  @Override
  public Optional<CookieHandler> cookieHandler() {
    return Optional.empty();
  }

  @Override
  public Optional<Duration> connectTimeout() {
    return Optional.empty();
  }

  @Override
  public Redirect followRedirects() {
    return Redirect.NEVER;
  }

  @Override
  public Optional<ProxySelector> proxy() {
    return Optional.empty();
  }

  @Override
  public SSLContext sslContext() {
    throw new UnsupportedOperationException();
  }

  @Override
  public SSLParameters sslParameters() {
    throw new UnsupportedOperationException();
  }

  @Override
  public Optional<Authenticator> authenticator() {
    return Optional.empty();
  }

  @Override
  public Version version() {
    return Version.HTTP_1_1;
  }

  @Override
  public Optional<Executor> executor() {
    return Optional.empty();
  }
}
