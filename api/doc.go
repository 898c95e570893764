// Package api has what goes over the wire: the JSON of requests and answers, and the
// codes of problems with their statuses. The server, the Go client and the command
// line share it; it knows neither HTTP routers nor the domain.
//
// The tags beside json are for the generator of the OpenAPI document.
package api
