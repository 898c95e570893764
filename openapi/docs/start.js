SwaggerUIBundle({
  url: "../openapi.json",
  dom_id: "#page",
  deepLinking: true,
  // The validator is another host, which the page must not talk to.
  validatorUrl: null,
  // A bearer token does not outlive the page.
  persistAuthorization: false,
  displayRequestDuration: true,
});
