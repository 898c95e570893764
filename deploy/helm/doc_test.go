// Package helm_test renders the chart with Helm and holds what comes of it against the types of
// Kubernetes and against what a deployment of Fencepost needs. No cluster is asked.
package helm_test
