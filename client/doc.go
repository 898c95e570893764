// Package client holds locks of Fencepost honestly: it renews them in time, stops the work in time,
// repeats requests safely, and hands the fence to the write.
//
//	c, err := client.New(client.Config{URLs: []string{url}, Token: client.Bearer(token)})
//	defer c.Close()
//	err = c.Do(ctx, "orders:42", client.Options{TTL: 30 * time.Second, Wait: time.Minute},
//		func(ctx context.Context, held *client.Held) error {
//			_, err := db.ExecContext(ctx, "UPDATE account SET balance = $1, fence = $2 "+
//				"WHERE id = $3 AND fence <= $2", balance, held.Fence(), id)
//			return err
//		})
//
// A lease is no guarantee: a process can stop between any check and its write. So the resource that
// is written compares the fence, as above, and the lock keeps others from the work meanwhile.
//
// The client renews a [Held] lock at a third of its TTL. Its deadline is when the last successful
// request was sent, plus the TTL, minus a margin. Of two clocks the one counts by which more time
// passed: the monotonic clock, and on Linux the boot clock, which does not stand still while the
// machine is suspended, elsewhere the wall clock. At the deadline the context of the work ends.
// Until then the client repeats renewals that fail, at the other URLs too.
//
// Errors are an [Error] with the code of the server's problem, or a [LostError].
//
// A Client does not survive a fork, which Go programs do not do. It needs no OpenTelemetry:
// [Config.Propagate] passes the caller's trace on.
package client
