package outbox

// ShardOf is for tests.
func ShardOf(name string) string { return shardOf(name) }
