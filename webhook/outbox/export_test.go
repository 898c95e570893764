package outbox

import (
	"strconv"
	"time"

	"github.com/fencepost/fencepost/webhook"
)

// ShardOf is for tests.
func ShardOf(name string) string { return shardOf(name) }

// MaxOfTarget is how many deliveries a target is owed at most.
const MaxOfTarget = maxOfTarget

// Hushed returns of how many receivers it is kept that they are to be left alone, after so many have asked.
func Hushed(asked int) int {
	var q quiet
	for i := range asked {
		q.hush(strconv.Itoa(i), &webhook.Result{Outcome: webhook.Throttled, RetryAfter: time.Hour}, time.Now())
	}
	return len(q.until)
}
