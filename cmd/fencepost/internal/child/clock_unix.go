//go:build unix && !linux

package child

import "golang.org/x/sys/unix"

const bootClock = unix.CLOCK_MONOTONIC // which passes during a suspension on these systems
