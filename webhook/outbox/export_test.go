package outbox

// ShardOf is for tests.
func ShardOf(name string) string { return shardOf(name) }

// MaxOfTarget is how many deliveries a target is owed at most.
const MaxOfTarget = maxOfTarget
