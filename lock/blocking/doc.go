// Package blocking reports which holders block which waiters: one tree for each blocking holder,
// with how long the waiters have waited because of it. It is a function of queues and an instant.
package blocking
