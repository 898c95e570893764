// Package view is a replica's picture of the store. It knows which entries exist and which hold,
// why entries ended, which of them wait forever, and how locks are used. It follows the store's
// feed, answers questions about it, and wakes the requests that wait for an entry. It makes no
// store calls and grants nothing: package service does.
package view
