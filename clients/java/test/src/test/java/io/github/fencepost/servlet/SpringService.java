package io.github.fencepost.servlet;

import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.request;

import com.google.gson.JsonArray;
import jakarta.servlet.ServletException;
import java.net.URI;
import org.springframework.http.HttpMethod;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.test.web.servlet.MockMvc;
import org.springframework.test.web.servlet.request.MockHttpServletRequestBuilder;
import org.springframework.test.web.servlet.setup.MockMvcBuilders;
import org.springframework.web.bind.annotation.RequestAttribute;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.bind.annotation.RestController;

/** A controller of Spring. */
final class SpringService implements Service {
  private final MockMvc mvc;

  SpringService(FenceFilter filter, Runnable ran) {
    mvc = MockMvcBuilders.standaloneSetup(new Controller(ran)).addFilters(filter).build();
  }

  @Override
  public Answer send(String method, String path, JsonArray fences) throws Exception {
    MockHttpServletRequestBuilder request = request(HttpMethod.valueOf(method), URI.create(path));
    for (String fence : Service.texts(fences)) {
      request.header("Fence", fence);
    }
    try {
      MockHttpServletResponse answer = mvc.perform(request).andReturn().getResponse();
      return new Answer(
          answer.getStatus(), answer.getContentType(), answer.getContentAsString());
    } catch (ServletException e) { // a container answers it
      return new Answer(500, "", e.getMessage());
    }
  }

  @Override
  public void close() {}

  @RestController
  static final class Controller {
    private final Runnable ran;

    Controller(Runnable ran) {
      this.ran = ran;
    }

    @RequestMapping(
        path = "/**",
        method = {
          RequestMethod.GET, RequestMethod.HEAD, RequestMethod.OPTIONS, RequestMethod.PUT,
          RequestMethod.POST, RequestMethod.PATCH, RequestMethod.DELETE
        })
    String handle(@RequestAttribute(name = FenceFilter.FENCE, required = false) Long fence) {
      ran.run();
      return String.valueOf(fence == null ? 0 : fence);
    }
  }
}
