// Package row holds the rows of the benchmark: what each one starts, how it
// loads it, what it compares and which bar it has to reach.
//
// Both sides of a comparison are real processes on this machine with fsync on.
// They take turns in short rounds, so that what else the machine does touches
// both, and the figure that counts is the ratio within a round.
package row
