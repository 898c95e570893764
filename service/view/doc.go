// Package view is a replica's picture of the store: which entries exist and which hold,
// why entries ended, which of them wait for ever, and how locks are used. It follows the store's
// feed, answers questions about what it has seen, and wakes the requests that wait for an entry. It
// asks the store nothing, and grants nothing: that is what package service does.
package view
