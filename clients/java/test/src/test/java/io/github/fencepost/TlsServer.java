package io.github.fencepost;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** A development server with a certificate, which speaks HTTP/2 and HTTP/1.1. */
final class TlsServer implements AutoCloseable {
  private final Path folder = Files.createTempDirectory(Path.of("target"), "tls");
  private final Process process;
  private final String url;

  TlsServer() throws IOException, InterruptedException {
    String source = output("go", "env", "GOROOT") + "/src/crypto/tls/generate_cert.go";
    run("go", "run", source, "--host", "127.0.0.1");
    process = new ProcessBuilder(
        Path.of("../../../bin/api").toRealPath().toString(), "--dev", "--listen", "127.0.0.1:0",
        "--data-dir", "data", "--log-level", "error",
        "--tls-cert", "cert.pem", "--tls-key", "key.pem")
        .directory(folder.toFile()).redirectError(folder.resolve("log").toFile()).start();
    String ready = "Fencepost is ready at ";
    String line = "";
    for (Scanner lines = new Scanner(process.getInputStream()); !line.startsWith(ready);) {
      assertTrue(lines.hasNextLine(), "the server does not start");
      line = lines.nextLine();
    }
    url = line.substring(ready.length()).split(" ")[0];
  }

  private Process start(String... command) throws IOException {
    return new ProcessBuilder(command).directory(folder.toFile())
        .redirectError(ProcessBuilder.Redirect.INHERIT).start();
  }

  private void run(String... command) throws IOException, InterruptedException {
    assertTrue(start(command).waitFor() == 0, command[0]);
  }

  private String output(String... command) throws IOException {
    return new String(start(command).getInputStream().readAllBytes()).strip();
  }

  String url() {
    return url;
  }

  String token() throws IOException {
    return Files.readString(folder.resolve("data/dev-token"));
  }

  SSLContext trust() throws Exception {
    KeyStore known = KeyStore.getInstance(KeyStore.getDefaultType());
    known.load(null, null);
    try (InputStream file = Files.newInputStream(folder.resolve("cert.pem"))) {
      Certificate own = CertificateFactory.getInstance("X.509").generateCertificate(file);
      known.setCertificateEntry("own", own);
    }
    TrustManagerFactory trust =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(known);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, trust.getTrustManagers(), null);
    return context;
  }

  @Override
  public void close() {
    process.destroy();
    process.onExit().orTimeout(30, TimeUnit.SECONDS).join();
  }
}
