// Package view is a replica's picture of the store: which entries there are, who holds,
// why entries ended, who waits for ever, and how locks are used. It follows the store's
// feed, answers questions about what it has seen, and wakes who waits for an entry. It
// asks the store nothing, and grants nothing: that is what package service does.
package view
