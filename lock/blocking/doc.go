// Package blocking tells who blocks whom: a tree for each holder because of whom others wait,
// with how long they have waited because of him. It is a function of queues and an instant.
package blocking
