package io.github.fencepost.servlet;

import com.google.gson.JsonArray;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/** A servlet in Tomcat. */
final class TomcatService implements Service {
  private final HttpClient client = HttpClient.newHttpClient();
  private final Tomcat tomcat = new Tomcat();

  TomcatService(FenceFilter filter, Runnable ran) throws Exception {
    Path target = Files.createDirectories(Path.of("target", "tomcat"));
    String folder = target.toAbsolutePath().toString();
    tomcat.setBaseDir(folder);
    tomcat.setPort(0);
    Context context = tomcat.addContext("", folder);
    Tomcat.addServlet(context, "servlet", new Servlet(ran));
    context.addServletMapping("/*", "servlet");
    FilterDef definition = new FilterDef();
    definition.setFilterName("fence");
    definition.setFilter(filter);
    context.addFilterDef(definition);
    FilterMap map = new FilterMap();
    map.setFilterName("fence");
    map.addURLPattern("/*");
    context.addFilterMap(map);
    tomcat.getConnector();
    tomcat.start();
  }

  @Override
  public Answer send(String method, String path, JsonArray fences) throws Exception {
    URI uri = URI.create("http://127.0.0.1:" + tomcat.getConnector().getLocalPort() + path);
    HttpRequest.Builder request = HttpRequest.newBuilder(uri)
        .method(method, HttpRequest.BodyPublishers.noBody());
    for (String fence : Service.texts(fences)) {
      request.header("Fence", fence);
    }
    HttpResponse<String> answer =
        client.send(request.build(), HttpResponse.BodyHandlers.ofString());
    String type = answer.headers().firstValue("Content-Type").orElse("");
    return new Answer(answer.statusCode(), type, answer.body());
  }

  /** Sends a path as it is, which HTTP clients would not, and returns the status. */
  String sendLine(String line, long fence) throws IOException {
    try (Socket socket = new Socket("127.0.0.1", tomcat.getConnector().getLocalPort())) {
      String request = line + " HTTP/1.1\r\nHost: 127.0.0.1\r\nFence: " + fence
          + "\r\nConnection: close\r\n\r\n";
      socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
      byte[] answer = socket.getInputStream().readAllBytes();
      return new String(answer, StandardCharsets.UTF_8).split(" ")[1];
    }
  }

  @Override
  public void close() throws IOException {
    try {
      tomcat.stop();
      tomcat.destroy();
    } catch (LifecycleException e) {
      throw new IOException(e);
    }
  }

  private static final class Servlet extends HttpServlet {
    private static final long serialVersionUID = 1;
    private final transient Runnable ran;

    Servlet(Runnable ran) {
      this.ran = ran;
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response)
        throws IOException {
      ran.run();
      Object fence = request.getAttribute(FenceFilter.FENCE);
      response.getWriter().print(fence == null ? 0 : fence);
    }
  }
}
