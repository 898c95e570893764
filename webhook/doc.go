// Package webhook is what one delivery is: how it is signed, where it may go, one
// attempt and what came of it, when it is tried again, and how many receivers share a
// sender without delaying each other. Which deliveries are pending, and where they are stored, is
// decided elsewhere.
package webhook
