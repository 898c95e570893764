const order = ["post", "put", "get", "delete"];
const rank = (operation) => order.indexOf(operation.get("method"));

SwaggerUIBundle({
  url: "../openapi.json",
  dom_id: "#page",
  deepLinking: true,
  operationsSorter: (a, b) => rank(a) - rank(b),
  // A field that is there in one state only would be in every example.
  defaultModelRendering: "model",
  // The validator is another host, which the page must not talk to.
  validatorUrl: null,
  // A bearer token does not outlive the page.
  persistAuthorization: false,
  displayRequestDuration: true,
});
