package io.github.fencepost;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The client does what clients/vectors says, like those in other languages. */
class VectorsTest {
  private static final Path FOLDER = Paths.get("..", "..", "vectors");

  @TestFactory
  List<DynamicTest> vectors() throws IOException {
    JsonObject bodies = Vector.read(FOLDER.resolve("bodies.json")).getAsJsonObject();
    List<DynamicTest> tests = new ArrayList<>();
    Set<String> names = new HashSet<>();
    for (Path file : files()) {
      for (JsonElement one : Vector.read(file).getAsJsonArray()) {
        Vector vector = new Vector(one.getAsJsonObject(), bodies);
        assertTrue(names.add(vector.name()), "there are two vectors " + vector.name());
        tests.add(DynamicTest.dynamicTest(vector.name(), () -> play(vector)));
      }
    }
    assertTrue(names.size() >= 40, "there are " + names.size() + " vectors");
    return tests;
  }

  private static List<Path> files() throws IOException {
    try (Stream<Path> all = Files.list(FOLDER)) {
      return all
          .filter(file -> file.toString().endsWith(".json") && !file.endsWith("bodies.json"))
          .sorted().collect(Collectors.toList());
    }
  }

  private static void play(Vector vector) throws IOException {
    List<String> faults = Run.play(vector);
    report(vector.name() + "\t" + (faults.isEmpty() ? "ok" : "failed"));
    assertTrue(faults.isEmpty(), String.join("\n", faults));
  }

  /** Adds a line to the table of all languages. */
  private static void report(String line) throws IOException {
    String file = System.getenv("VECTORS_REPORT");
    if (file != null && !file.isEmpty()) {
      Files.writeString(
          Paths.get(file), line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
  }
}
