// Package series keeps what happened in the last quarter of an hour, in steps. It reads no
// clock, and is not safe for concurrent use.
package series
