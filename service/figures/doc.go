// Package figures keeps statistics of locks as one replica saw them since it started. It has the
// figures, events and signs of short leases of recently used locks, and each tenant's last
// quarter of an hour and last hours. The server decides nothing by it. It reads no instant from
// a clock.
package figures
